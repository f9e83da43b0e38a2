"""Codemods for NKI kernels: 0.1 to 0.7, checked by running both."""
