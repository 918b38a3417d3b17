"""JSON Schema of spec files in a form for editors."""
