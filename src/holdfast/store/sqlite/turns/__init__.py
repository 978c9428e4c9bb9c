"""Who may write now: a fair line of threads and processes, and waits for those outside it."""
