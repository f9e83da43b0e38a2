"""Chains of products, row reductions and functions of the same rows, all on chip."""
