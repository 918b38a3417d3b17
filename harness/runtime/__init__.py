"""Drives episodes: `episode` plays one protocol, `players` sit in its seats, `runner` keeps many episodes going and
journals
them, `scoring` turns them into numbers, `manifest` writes run.json. Where episodes run is `harness.executors`'
business."""
