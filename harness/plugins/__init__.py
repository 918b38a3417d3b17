"""What may be loaded: extensions of installed packages (`installed`), what a user has approved (`approval_record`)."""
