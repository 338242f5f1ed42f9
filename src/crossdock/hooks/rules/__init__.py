"""The decisions of the hooks slice: pure functions, each with a table of tests."""
