"""Tasks that propose what a spec leaves out: prompts, metrics, tables."""
