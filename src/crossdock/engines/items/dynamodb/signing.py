"""AWS Signature Version 4 for DynamoDB's one kind of request: a POST of JSON to `/`. Pure.

The signing key depends on the day, the region and the secret only, and is kept for the day: what is left is
two SHA-256 and one HMAC a request.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass

ALGORITHM = "AWS4-HMAC-SHA256"
CONTENT_TYPE = "application/x-amz-json-1.0"


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str
    session_token: str | None = None

    def __repr__(self) -> str:
        return f"Credentials({self.access_key!r})"


def signing_key(secret_key: str, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


class Signer:
    """Signs for one host and region. Not pure by one cache: the signing key of the day."""

    def __init__(self, host: str, region: str, service: str = "dynamodb") -> None:
        self._host = host
        self._region = region
        self._service = service
        self._key = b""
        self._key_of: tuple[Credentials, str] | None = None

    def headers(self, target: str, body: bytes, credentials: Credentials, now_ms: int) -> dict[str, str]:
        """Every header of the request but Content-Length. `target`: `DynamoDB_20120810.PutItem`."""
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now_ms // 1000))
        day = moment[:8]
        scope = f"{day}/{self._region}/{self._service}/aws4_request"
        headers = {
            "content-type": CONTENT_TYPE,
            "host": self._host,
            "x-amz-date": moment,
        }
        if credentials.session_token is not None:
            headers["x-amz-security-token"] = credentials.session_token
        headers["x-amz-target"] = target
        # In the order of their names, which they are in already.
        names = ";".join(headers)
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        request = f"POST\n/\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        text = f"{ALGORITHM}\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        signature = hmac.digest(self._key_for(credentials, day), text.encode(), "sha256").hex()
        headers["authorization"] = (
            f"{ALGORITHM} Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return headers

    def _key_for(self, credentials: Credentials, day: str) -> bytes:
        if self._key_of != (credentials, day):
            self._key = signing_key(credentials.secret_key, day, self._region, self._service)
            self._key_of = (credentials, day)
        return self._key
