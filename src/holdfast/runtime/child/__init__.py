"""The template and the children: processes that run user code, and never open the store."""
