"""The SQLite engine: one file, many processes, nothing to set up."""
