"""The engine for a small model on this machine, without a GPU and without a model hub."""
