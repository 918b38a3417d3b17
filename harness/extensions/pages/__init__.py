"""The report about runs as one HTML page."""
