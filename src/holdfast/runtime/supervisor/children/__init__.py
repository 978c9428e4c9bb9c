"""The supervisor's side of its children: making them, telling them, hearing them, ending them."""
