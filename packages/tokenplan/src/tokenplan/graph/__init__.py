"""The token graph: which orderings a kernel needs, which it does not, and why."""
