"""Programs as data: nodes, traversal, subscripts, constants, names, text, binding to records."""
