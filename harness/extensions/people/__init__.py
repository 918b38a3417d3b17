"""A person as an engine: you take a seat in the terminal."""
