from __future__ import annotations

from dataclasses import dataclass

from crossdock.kit.configuration import setting


@dataclass(frozen=True, slots=True)
class AccessSettings:
    session_hours: int = setting(24, "How long a login to the console lasts.", minimum=1, maximum=24 * 30)
