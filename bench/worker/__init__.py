"""The worker's figures: how fast it drains a queue, how quickly it answers, what it costs."""
