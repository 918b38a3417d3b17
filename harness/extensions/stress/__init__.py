"""Whether replies are read as they were meant."""
