"""Wrappers of an engine that options switch on: budgets, a cache, a log of requests, a switcher; and calls of tools."""
