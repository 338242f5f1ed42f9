"""Hooks: webhooks received, verified, kept, filtered, reshaped, delivered with retries, and replayed.

What the slice offers is in `composition`. It is not imported here: commands ask for the tables of all slices,
and need not wait for what serves.
"""
