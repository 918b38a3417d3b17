"""The size at which a group solves half, and runs that play only what says most about it. Begin with `curve.py`."""
