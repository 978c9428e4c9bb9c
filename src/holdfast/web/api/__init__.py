"""The HTTP API: what may be asked and done below `/api/v1`, and the document that says so."""
