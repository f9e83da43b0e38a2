"""What the machine's errors say in words of later versions, in the words of 0.1."""

from __future__ import annotations

from neuroncore.errors import KernelError

PHRASES = {
    "bring it on chip with nisa.dma_copy first": "bring it on chip with nl.load first",
    "with nisa.tensor_copy": "with nl.copy",
    "use .broadcast, a (P, 1) operand of tensor_scalar, or .ap with step 0": (
        "use .broadcast_to(shape), or a (P, 1) operand of tensor_scalar"
    ),
    "an index that the device computes goes into .ap(scalar_offset= or vector_offset=)": (
        "an index that the device computes is a tile: t[idx, nl.arange(F)[None, :]]"
    ),
    "copy the tensor first, or use .ap with an explicit pattern": "copy the tensor first",
    "put the whole access into the pattern of .ap": (
        "put the whole access into one pair of brackets"
    ),
    "use dst.reshape or .ap": "use .reshape",
    "NKI: NkiTensor.ap": "NKI 0.1: advanced tensor indexing",
}
"""Part of an error's text → what it is in 0.1, which has no .ap and names its copies nl.*."""


def spoken(text: str | None) -> str | None:
    """A part of an error as 0.1 says it."""
    for later, now in PHRASES.items():
        text = text and text.replace(later, now)
    return text


def reword(error: KernelError) -> None:
    """Let an error of the machine speak of the functions that a kernel of 0.1 has."""
    error.hint, error.rule = spoken(error.hint), spoken(error.rule)
    error.expected = spoken(error.expected)
