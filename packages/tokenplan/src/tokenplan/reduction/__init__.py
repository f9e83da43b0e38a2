"""The minimal token graph: orders that follow from others are implied."""
