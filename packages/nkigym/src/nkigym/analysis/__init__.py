"""Analyses of kernel programs: accesses, disjointness, legality, rooflines, outputs."""
