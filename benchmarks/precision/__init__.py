"""How far generated kernels are from float64, operation by operation."""
