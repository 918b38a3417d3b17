"""Drives episodes: `episode` plays one protocol, `players` act in it, `runner` keeps many episodes open and journals
them, `scoring` turns them into numbers, `manifest` writes run.json. `executors` decides where they run."""
