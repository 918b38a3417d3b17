"""Benchmarks that others can rely on: their certificate, and registers of them. Begin with `certify.py`."""
