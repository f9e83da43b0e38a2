"""Index expressions, masks and the axes that they vary on."""
