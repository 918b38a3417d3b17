"""A benchmark for groups of language models; `extension.toml` lists what the package adds to harness."""
