"""What the supervisor knows: tasks in hand, where they go, what they cost."""
