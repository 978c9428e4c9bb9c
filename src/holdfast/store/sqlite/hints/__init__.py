"""Wake-up hints between processes that share a file."""
