"""The supervisor process: it owns the store, and never runs user code."""
