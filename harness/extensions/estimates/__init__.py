"""What a plan will ask for, before anything is asked: calls and tokens."""
