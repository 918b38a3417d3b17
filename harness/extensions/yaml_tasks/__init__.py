"""Tasks that are written in YAML alone, and the expressions, templates and checks that they need."""
