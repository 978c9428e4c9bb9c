"""One process, one SQLite library for each file: what else has it open, and how we make way."""
