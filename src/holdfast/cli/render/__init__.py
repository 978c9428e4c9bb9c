"""What commands print: tables, details, times, JSON."""
