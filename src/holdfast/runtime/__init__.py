"""The worker: a supervisor that never runs user code, and children that never open the store."""
