CREATE TABLE workspaces (
    id         uuid PRIMARY KEY,
    name       text NOT NULL,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    key_hash     text NOT NULL UNIQUE,
    key_prefix   text NOT NULL,
    label        text NOT NULL,
    workspace_id uuid REFERENCES workspaces,   -- null: full access
    is_active    boolean NOT NULL DEFAULT true,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL
);

CREATE INDEX api_keys_workspace_id ON api_keys (workspace_id, id);

CREATE TABLE sessions (
    id         uuid PRIMARY KEY,
    api_key_id uuid NOT NULL REFERENCES api_keys,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE INDEX sessions_expires_at ON sessions (expires_at);

CREATE TABLE settings (
    key        text COLLATE "C" PRIMARY KEY,
    value      text NOT NULL,
    updated_at timestamptz NOT NULL
);
