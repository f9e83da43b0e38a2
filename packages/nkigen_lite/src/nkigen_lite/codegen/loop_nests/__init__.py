"""Loop nests of element-wise operations, row reductions and outer reductions."""
