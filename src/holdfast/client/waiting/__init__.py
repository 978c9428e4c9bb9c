"""From a handle to a result: sleeping until tasks end, and what the caller gets."""
