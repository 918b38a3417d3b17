"""Tasks that are written in YAML alone, and the expressions in them."""
