"""What happened in a run, as OpenTelemetry spans by the conventions for generative AI: as files, and live."""
