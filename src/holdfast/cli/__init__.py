"""The `holdfast` command: parses arguments, calls the layers below, renders. Decides nothing."""
