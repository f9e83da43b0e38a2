"""Tests of kernels under pytest: the marker `nki`, the fixture `nki_compare`, short failures."""
