"""From a call to a durable task: options, repeated tries, the handle."""
