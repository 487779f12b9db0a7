"""The discovery run: `pipeline` is its table of contents, one module per phase."""
