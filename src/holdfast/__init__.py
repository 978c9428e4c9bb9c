"""Holdfast: a durable task queue for Python, on one SQLite file or on PostgreSQL.

Owns the public names and nothing else. It must stay light: importing it loads no
command line, no PostgreSQL driver and no optional dependency.
"""

__version__ = "0.1.0.dev0"

__all__ = ["__version__"]
