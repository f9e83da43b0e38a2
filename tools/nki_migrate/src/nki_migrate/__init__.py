"""Codemods for NKI kernels: 0.1 to 0.6, checked by running both."""
