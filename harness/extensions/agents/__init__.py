"""What plays in a model's place: agents of your own (a Python function or class, a program, a server), or a person."""
