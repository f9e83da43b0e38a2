"""Calls without a destination: operands, masks, dtypes, assignment."""
