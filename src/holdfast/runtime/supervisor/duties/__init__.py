"""The supervisor's threads: one duty each."""
