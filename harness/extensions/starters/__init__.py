"""New projects, and new tasks in YAML."""
