-- What was answered to a request with an Idempotency-Key, written in the transaction of its effect.
CREATE TABLE idempotency_records (
    scope          text PRIMARY KEY,       -- SHA-256 over principal, method, path and key
    request_sha256 text NOT NULL,
    response       text NOT NULL,          -- sealed
    created_at     timestamptz NOT NULL,
    expires_at     timestamptz NOT NULL
);

CREATE INDEX idempotency_records_expires_at ON idempotency_records (expires_at);
