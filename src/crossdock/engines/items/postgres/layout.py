"""How a declared table lies in PostgreSQL: its columns, its DDL and the statements over them.

One table each in schema `items`: the key attributes and the index attributes as text columns of their own
(`COLLATE "C"`: byte order, as DynamoDB's), `expires_at`, the item as `json` (docs/adr/0002), and each wide
attribute in a column that an update of the others does not rewrite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from crossdock.engines.items.apply import narrow
from crossdock.engines.items.lifetime import expires_at
from crossdock.engines.items.limits import check_text, encode_item, text_bytes
from crossdock.engines.items.port import Index, Item, ItemRejected, Key, Table, Value

SCHEMA = "items"

RowKey: TypeAlias = tuple[str, ...]
Row: TypeAlias = tuple[object, ...]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, eq=False)  # one a table, compared by identity: hashing it is on the hot path
class Layout:
    table: Table
    prefix: str = ""

    @cached_property
    def relation(self) -> str:
        return f"{SCHEMA}.{quoted(self.prefix + self.table.name)}"

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return self.table.key_attributes

    @cached_property
    def index_attributes(self) -> tuple[str, ...]:
        named = (name for index in self.table.indexes for name in (index.partition, index.sort))
        return tuple(dict.fromkeys(name for name in named if name is not None and name not in self.keys))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """In the order of a row: keys, index attributes, expires_at, item, wide attributes."""
        return (*self.keys, *self.index_attributes, "expires_at", "item", *self.table.wide)

    @cached_property
    def item_column(self) -> int:
        return self.columns.index("item")

    @cached_property
    def column_types(self) -> tuple[str, ...]:
        texts = len(self.keys) + len(self.index_attributes)
        return ("text",) * texts + ("bigint", "json") + ("text",) * len(self.table.wide)

    # --- items and rows ---

    def row_key(self, key: Key) -> RowKey:
        return tuple(key[name] for name in self.keys)

    def key_of(self, item: Mapping[str, Value]) -> RowKey:
        return tuple(str(item[name]) for name in self.keys)

    def row(self, item: Item) -> Row:
        """The row of a whole item. Raises ItemRejected."""
        wide: tuple[str | None, ...] = ()
        if self.table.wide:
            wide = tuple([self._wide_value(item, name) for name in self.table.wide])
            sizes = zip(self.table.wide, wide, strict=True)
            hidden_bytes = sum([len(name) + text_bytes(text) for name, text in sizes if text is not None])
            encoded = encode_item(self.table, narrow(self.table, item) or item, hidden_bytes)
        else:
            encoded = encode_item(self.table, item)
        texts = [item[name] for name in self.keys]
        texts.extend(item.get(name) for name in self.index_attributes)
        return (*texts, expires_at(self.table, item), encoded, *wide)

    def _wide_value(self, item: Item, name: str) -> str | None:
        value = item.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise ItemRejected(f"{name} must be a string.")
        check_text(value)
        return value

    # --- definitions ---

    def definitions(self) -> list[str]:
        keys = ", ".join(quoted(name) for name in self.keys)
        lines = [f'{quoted(name)} text COLLATE "C" NOT NULL' for name in self.keys]
        lines += [f'{quoted(name)} text COLLATE "C"' for name in self.index_attributes]
        lines += ["expires_at bigint", "item json NOT NULL"]
        lines += [f"{quoted(name)} text" for name in self.table.wide]
        statements = [
            f"CREATE TABLE IF NOT EXISTS {self.relation} ({', '.join(lines)}, PRIMARY KEY ({keys}))",
            *(
                f"ALTER TABLE {self.relation} ADD COLUMN IF NOT EXISTS {line}"
                for line in lines[len(self.keys) :]
            ),
        ]
        statements += [self._index_definition(index) for index in self.table.indexes]
        if self.table.ttl is not None:
            name = quoted(f"{self.prefix}{self.table.name}_expires_at")
            statements.append(
                f"CREATE INDEX IF NOT EXISTS {name} ON {self.relation} (expires_at) "
                "WHERE expires_at IS NOT NULL"
            )
        return statements

    def _index_definition(self, index: Index) -> str:
        name = quoted(f"{self.prefix}{self.table.name}_{index.name}")
        columns = ", ".join(quoted(column) for column in self.index_order(index, with_partition=True))
        return (
            f"CREATE INDEX IF NOT EXISTS {name} ON {self.relation} ({columns}) WHERE {self.in_index(index)}"
        )

    def in_index(self, index: Index) -> str:
        present = [index.partition] if index.sort is None else [index.partition, index.sort]
        return " AND ".join(f"{quoted(name)} IS NOT NULL" for name in present)

    def index_order(self, index: Index, *, with_partition: bool = False) -> tuple[str, ...]:
        """What an index sorts by: its sort key, then the primary key, so that every item has one place."""
        named = (index.partition if with_partition else None, index.sort, *self.keys)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @cached_property
    def whole_item(self) -> str:
        """The item with its wide attributes, as an SQL expression of type json."""
        if not self.table.wide:
            return "item"
        pairs = ", ".join(f"'{name}', {quoted(name)}" for name in self.table.wide)
        wide = f"jsonb_strip_nulls(jsonb_build_object({pairs}))"
        return f"(item::jsonb || {wide})::json"

    # --- writing ---

    @cached_property
    def insert_if_absent(self) -> str:
        return f"{self._insert} ON CONFLICT DO NOTHING"

    @cached_property
    def upsert(self) -> str:
        keys = ", ".join(quoted(name) for name in self.keys)
        others = [quoted(name) for name in self.columns if name not in self.keys]
        return (
            f"{self._insert} ON CONFLICT ({keys}) DO UPDATE SET "
            f"({', '.join(others)}) = ROW({', '.join('EXCLUDED.' + name for name in others)})"
        )

    @cached_property
    def _insert(self) -> str:
        columns = ", ".join(quoted(name) for name in self.columns)
        return f"INSERT INTO {self.relation} ({columns}) SELECT * FROM {_arrays(self.column_types)}"

    def lock(self, *, with_wide: bool) -> str:
        """The rows of these keys; of wide attributes their values, or else their sizes only."""
        wide = "".join(
            f", t.{quoted(name)}" if with_wide else f", octet_length(t.{quoted(name)})"
            for name in self.table.wide
        )
        return (
            f"SELECT t.item{wide} FROM {_arrays(('text',) * len(self.keys))} AS k({self._aliases}) "
            f"JOIN {self.relation} t ON {self._same_key} ORDER BY {self._key_names} FOR UPDATE OF t"
        )

    @cached_property
    def amend(self) -> str:
        """Sets every column of locked rows but the wide ones, each of which comes with a flag.

        An unchanged wide value is assigned to itself, which PostgreSQL passes on without rewriting it.
        """
        narrow = [f"c{number}" for number in range(len(self.columns) - len(self.table.wide))]
        flags = [f"f{number}" for number in range(len(self.table.wide))]
        values = [f"v{number}" for number in range(len(self.table.wide))]
        types = (
            *self.column_types[: len(narrow)],
            *("boolean",) * len(flags),
            *("text",) * len(values),
        )
        sets = [
            f"{quoted(column)} = k.{alias}"
            for column, alias in zip(self.columns, narrow, strict=False)
            if column not in self.keys
        ] + [
            f"{quoted(column)} = CASE WHEN k.{flag} THEN k.{value} ELSE t.{quoted(column)} END"
            for column, flag, value in zip(self.table.wide, flags, values, strict=True)
        ]
        same_key = " AND ".join(f"t.{quoted(name)} = k.c{n}" for n, name in enumerate(self.keys))
        return (
            f"UPDATE {self.relation} t SET {', '.join(sets)} "
            f"FROM {_arrays(types)} AS k({', '.join([*narrow, *flags, *values])}) WHERE {same_key}"
        )

    @cached_property
    def remove(self) -> str:
        return (
            f"DELETE FROM {self.relation} t USING {_arrays(('text',) * len(self.keys))} "
            f"AS k({self._aliases}) WHERE {self._same_key}"
        )

    # --- reading ---

    @cached_property
    def get_many(self) -> str:
        wide = "".join(f", t.{quoted(name)}" for name in self.table.wide)
        return (
            f"SELECT t.item{wide} FROM {_arrays(('text',) * len(self.keys))} AS k({self._aliases}) "
            f"JOIN {self.relation} t ON {self._same_key}"
        )

    @cached_property
    def get_one(self) -> str:
        wide = "".join(f", {quoted(name)}" for name in self.table.wide)
        where = " AND ".join(f"{quoted(name)} = ${n}" for n, name in enumerate(self.keys, 1))
        return f"SELECT item{wide} FROM {self.relation} WHERE {where}"

    @cached_property
    def _key_names(self) -> str:
        return ", ".join(f"t.{quoted(name)}" for name in self.keys)

    @cached_property
    def _aliases(self) -> str:
        return ", ".join(f"k{number}" for number in range(len(self.keys)))

    @cached_property
    def _same_key(self) -> str:
        return " AND ".join(f"t.{quoted(name)} = k.k{n}" for n, name in enumerate(self.keys))


def _arrays(types: Sequence[str]) -> str:
    return f"unnest({', '.join(f'${n}::{kind}[]' for n, kind in enumerate(types, 1))})"


def transposed(rows: Iterable[Row]) -> list[list[object]]:
    """Rows as the column arrays that `unnest` takes."""
    return [list(column) for column in zip(*rows, strict=True)]
