from __future__ import annotations

import pytest

from crossdock.terminal.moments import parse_moment

NOW_MS = 1_705_314_600_000  # 2024-01-15T10:30:00Z


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2024-01-15T10:30:00Z", NOW_MS),
        ("2024-01-15T11:30:00+01:00", NOW_MS),
        ("2024-01-15T10:30:00.250Z", NOW_MS + 250),
        ("1705314600000", NOW_MS),
        ("0", 0),
        ("-90s", NOW_MS - 90_000),
        ("-15m", NOW_MS - 900_000),
        ("-24h", NOW_MS - 86_400_000),
        ("-7d", NOW_MS - 7 * 86_400_000),
        ("-999999999d", 0),
    ],
)
def test_times_are_taken_as_people_write_them(text: str, ms: int) -> None:
    assert parse_moment(text, NOW_MS) == ms


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2024-01-15T10:30:00", "-24", "24h", "-1w", "-h", "1.5", "٣", "--1h", "-1h "]
)
def test_anything_else_is_refused_with_what_may_be_written(text: str) -> None:
    with pytest.raises(ValueError, match="-24h"):
        parse_moment(text, NOW_MS)
