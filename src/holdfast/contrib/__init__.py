"""Integrations with other libraries, one module each; none is imported by Holdfast itself."""
