"""Agents of your own as engines: a Python function or class, a program, a server."""
