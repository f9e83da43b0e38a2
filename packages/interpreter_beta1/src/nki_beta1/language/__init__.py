"""The functions and constants of nki.language, nki.isa and nki.typing of NKI 0.1."""

from nki_beta1.language import arithmetic, gather, loop_reduce, random_numbers, reductions

__all__ = ["arithmetic", "gather", "loop_reduce", "random_numbers", "reductions"]
