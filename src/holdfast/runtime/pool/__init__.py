"""Children: making them, handing them tasks, hearing from them, ending them."""
