"""Instruction selection: the operations of a group as instructions on tiles."""
