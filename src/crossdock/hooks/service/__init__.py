"""Use cases of the hooks slice."""
