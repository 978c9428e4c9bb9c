"""`holdfast top`: the terminal monitor, from what is read to what is painted."""
