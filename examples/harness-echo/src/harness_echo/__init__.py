"""An extension of harness that says things again; `extension.toml` lists what it adds."""
