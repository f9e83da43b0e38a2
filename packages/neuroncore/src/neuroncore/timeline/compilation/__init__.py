"""Compiles a program to steps that can be played."""
