"""When a schedule fires: its pattern, its ticks in a time zone, and what is made of those due."""
