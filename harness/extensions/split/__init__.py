"""Labels of tables that are made of another label's values (`split:`)."""
