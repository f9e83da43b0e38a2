"""Elision of orders that a kernel does not need, pair by pair."""
