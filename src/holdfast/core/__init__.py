"""The pure part of Holdfast: states, rules, values and their encoding.

Nothing below this package does I/O. Clocks and randomness are arguments, so every
decision made here can be repeated in a test.
"""
