"""Tables as LaTeX (`latex`), and on screens that are too narrow for them (`narrow`)."""
