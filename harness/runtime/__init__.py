"""Drives episodes: `episode` plays one, `players` act in it, `open_episodes` keeps many open and journals them,
`scoring` turns them into numbers, `run_json` describes the run. `runner` says what is left to play, `executors`
where."""
