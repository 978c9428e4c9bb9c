"""The PostgreSQL engine: one store over psycopg 3.

Nothing outside this package knows psycopg, and importing `holdfast` does not load it.
"""

from __future__ import annotations

import psycopg

# Older ones do not let go of a wait for a server that has fallen silent.
if tuple(map(int, psycopg.__version__.split(".")[:2])) < (3, 3):
    raise ImportError(f"psycopg 3.3 or newer is needed, this is {psycopg.__version__}")
