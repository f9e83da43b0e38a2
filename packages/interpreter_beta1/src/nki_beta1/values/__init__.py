"""Common to all values of the language: descriptions and Python's special methods."""
