"""The decisions of the devices slice: pure functions, each with a table of tests."""
