"""The verbs: each an operation that both engines run, and that knows no driver."""
