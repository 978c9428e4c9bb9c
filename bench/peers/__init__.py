"""Other task queues, each in a virtual environment of its own, doing the same tasks.

The programs here run in those environments: they import nothing of Holdfast.
"""
