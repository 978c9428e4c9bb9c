"""The store for code inside children: their questions answered, their sends committed together."""
