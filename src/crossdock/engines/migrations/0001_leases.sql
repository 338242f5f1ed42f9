-- One row per name that was ever leased. Rows stay after release: the fence of a name never goes back.
CREATE TABLE leases (
    name       text        COLLATE "C" PRIMARY KEY,
    owner      text        NOT NULL,
    fence      bigint      NOT NULL,
    expires_at timestamptz NOT NULL
);
