"""From a call to a durable task: options, group commit, retries, the handle."""
