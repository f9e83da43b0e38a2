"""Tensors without their values: specs and strides, the errors about them, and distances in ulps."""
