"""The stored data: Items tables as slices declare them, and SQL schemas as migrations make them."""

from __future__ import annotations

from crossdock.engines.items.port import Index, Table
from crossdock.engines.sql.migrations import Migration, Migrations, read_migrations
from tools.reference.markdown import code, page, table
from tools.reference.modules import instances

INTRODUCTION = """\
What is stored, and where. Applied migrations never change; the columns of a table are what they add up to."""

ITEMS = """\
Tables of the Items port are the same on both backends: DynamoDB tables with these keys and indexes, or
PostgreSQL tables with the item as `json`. Names get `CROSSDOCK_TABLE_PREFIX` in front."""


def data_model_page() -> str:
    declared = {value.name: (module.__name__, value) for module, value in instances(Table)}
    parts = [INTRODUCTION, "## Items tables", ITEMS]
    for name in sorted(declared):
        module, each = declared[name]
        parts += [f"### {name}", _items_table(each, module)]
    parts.append("## SQL schemas")
    sources = [source for _, source in instances(Migrations)]
    for schema in sorted({source.schema for source in sources}):
        parts.append(f"### {schema}")
        for source in sorted(sources, key=lambda each: each.package):
            if source.schema == schema:
                parts += map(_migration, read_migrations(source))
    return page("Data model", *parts)


def _items_table(declared: Table, module: str) -> str:
    rows = [("primary key", _key(declared.partition, declared.sort))]
    rows += [(f"index {code(index.name)}", _index(index)) for index in declared.indexes]
    if declared.ttl:
        rows.append(("expires by", f"{code(declared.ttl)}, epoch seconds"))
    if declared.wide:
        rows.append(("kept apart", ", ".join(map(code, declared.wide))))
    if declared.stream:
        rows.append(("stream", "expired items are handed to a handler"))
    if declared.point_in_time_recovery:
        rows.append(("point-in-time recovery", "on, where the endpoint knows it"))
    rows.append(("declared in", code(module)))
    return table(("", ""), rows)


def _key(partition: str, sort: str | None) -> str:
    return code(partition) if sort is None else f"{code(partition)}, sorted by {code(sort)}"


def _index(index: Index) -> str:
    return _key(index.partition, index.sort) + (" (keys only)" if index.projection == "keys" else "")


def _migration(migration: Migration) -> str:
    return f"`{migration.label}.sql`\n\n```sql\n{migration.sql.strip()}\n```"
