"""Kernels as the planner sees them: operations in loops, and the bytes that each accesses."""
