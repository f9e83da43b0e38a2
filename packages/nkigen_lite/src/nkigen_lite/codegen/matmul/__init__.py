"""Products of matrices: operands on chip, blocks, batches."""
