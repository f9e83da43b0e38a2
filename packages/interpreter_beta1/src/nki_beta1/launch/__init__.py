"""Kernels: parameters, grids, results and errors."""
