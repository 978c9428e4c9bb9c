"""What a task may be told: its definition, its policies, and the checks of each option."""
