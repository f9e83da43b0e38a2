"""Kernels, their tensors and their schedule."""
