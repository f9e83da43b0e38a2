"""Dependences between instructions, from the bytes that they access."""
