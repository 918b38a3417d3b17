"""Tables of effects: which choices of a study matter."""
