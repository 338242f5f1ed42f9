from __future__ import annotations

import pytest
from tools.lock import uv_environment


@pytest.mark.parametrize(
    ("pip_config", "expected"),
    [
        ("", {}),
        (
            "global.index-url='https://mirror.example/simple'",
            {"UV_DEFAULT_INDEX": "https://mirror.example/simple"},
        ),
        ("global.cert='/etc/ssl/ca.crt'\nglobal.timeout='60'", {"SSL_CERT_FILE": "/etc/ssl/ca.crt"}),
        (
            "global.index-url='https://a.example'\n:env:.index-url='https://b.example'",
            {"UV_DEFAULT_INDEX": "https://b.example"},
        ),
        (
            "global.extra-index-url='https://a.example\\nhttps://b.example'",
            {"UV_INDEX": "https://a.example https://b.example"},
        ),
    ],
)
def test_where_pip_looks_is_where_the_locks_come_from(pip_config: str, expected: dict[str, str]) -> None:
    assert uv_environment(pip_config) == expected
