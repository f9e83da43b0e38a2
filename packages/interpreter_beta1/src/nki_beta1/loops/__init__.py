"""Loops of a kernel: ranges, and the loops around a call, read from bytecode."""
