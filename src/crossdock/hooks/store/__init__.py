"""Keys and access patterns of the hooks slice: the only files that know how things are stored."""
