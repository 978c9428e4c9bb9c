"""Every verb against every state, on every engine: generated from the table of the lifecycle."""
