"""Tensors of a kernel: tiles, blocks, creation and addresses."""
