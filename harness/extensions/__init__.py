"""Everything beyond the core, each in a folder of its own with an `extension.toml`. The core imports none of it."""
