from __future__ import annotations

from dataclasses import fields
from itertools import groupby

from crossdock.kit.configuration import PREFIX, SettingDescription, describe
from crossdock.settings import Settings
from tools.reference.markdown import code, page, table

INTRODUCTION = """\
Every setting is an environment variable, read once at the start. A wrong one is refused by name, with what it
must be. An empty variable is as good as unset, except where an empty list or text means something."""


def settings_page() -> str:
    groups = [field.name for field in fields(Settings) if "setting" not in field.metadata]
    sections = []
    for group, settings in groupby(describe(Settings), key=lambda each: _group_of(each, groups)):
        sections += [
            f"## {group}" if group else "",
            table(("variable", "value", "default", "what it does"), map(_row, settings)),
        ]
    return page("Settings", INTRODUCTION, *sections)


def _group_of(setting: SettingDescription, groups: list[str]) -> str:
    return next((name for name in groups if setting.variable.startswith(f"{PREFIX}{name.upper()}_")), "")


def _row(setting: SettingDescription) -> tuple[str, ...]:
    kind = f"{setting.kind} (secret)" if setting.secret else setting.kind
    return code(setting.variable), kind, code(setting.default), setting.help
