"""What may be loaded, and what a user has approved (`approval_record`)."""
