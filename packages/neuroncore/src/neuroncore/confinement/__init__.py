"""Confinement of user code by the system's kernel."""
