"""Tile grids of NKI 0.7: views of tensors by tile and by block of tiles."""
