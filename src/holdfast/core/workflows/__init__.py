"""Workflows as data: what is started, what is added, where a whole stands."""
