"""Reads runs back: conversations (`reader`), what the journal alone contains (`moves`), rows (`tidy`)."""
