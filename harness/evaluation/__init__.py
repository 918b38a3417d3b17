"""A run from its spec to its results.

`evaluate` is the door; `stages` are the steps of a run, `post_run` what extensions add after it, `run` the finished
`Run`; `load_run` reads one back from its folder, `rescore` grades it again. Importing this package imports nothing.
"""
