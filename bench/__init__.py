"""Benchmarks: what Holdfast costs beside hand-written SQL doing the same writes."""
