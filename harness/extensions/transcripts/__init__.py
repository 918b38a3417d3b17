"""Runs read back: conversations (`reader`), what the journal alone has of them (`moves`), rows (`tidy`)."""
