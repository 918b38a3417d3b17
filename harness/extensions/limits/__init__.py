"""What an episode, and each agent in it, may take: the key `limits:` of a spec."""
