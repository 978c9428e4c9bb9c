"""The PostgreSQL engine: one store over psycopg 3.

Nothing outside this package knows psycopg, and importing `holdfast` does not load it.
"""
