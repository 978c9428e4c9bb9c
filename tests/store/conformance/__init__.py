"""The same behaviour on every store, by concern."""
