"""The store: every verb of the lifecycle as an operation, and the databases that run them.

Decides nothing about a task; what a verb may do is said in `core.lifecycle`.
"""
