"""Arrays in HBM: their buffers, copies, permutations, gathers and constants."""
