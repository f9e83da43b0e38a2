"""Rewrites of a graph into shapes and operations that code generation supports."""
