"""What a spec, a run or a project would run or send; once read, it is approved by digest."""
