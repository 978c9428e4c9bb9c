"""The client: defining tasks, sending them, waiting for them, operating on them.

Runs no task and knows no SQL. Everything it asks of the database is an operation of
`store`; it and `runtime` are siblings and never import each other.
"""
