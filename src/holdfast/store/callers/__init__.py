"""The caller's own connection: what is behind it, and our operations in its transaction."""
