"""What stands before an engine where an option asks for it."""
