"""A folder for PYTHONPATH: see `sitecustomize`."""
