"""Contents of constants: bytes in a program; in its text numbers, or base 64 at its end.

    few = constant(float32[3], [0.5, 1.0, inf])
    table = constant(float32[512, 64])
    …
table = data("9f86d081884c7d65", base64=\"\"\"
AACAPwAAgD8AAIA/…
\"\"\")

A constant of few elements says them where it stands, if numbers say them bit for bit. The bytes of
any other follow the function, with the first half of their SHA-256: in base 64, row by row, little
end first; deflated before that (`deflated=`) where it halves them, and already their beginning.
"""

from __future__ import annotations

import binascii
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.program.ir.nodes import Buffer, plain_number
from nki_dtypes import DType, int32

FEW = 16
"""Elements that are shown as numbers."""
COLUMNS = 100
PROBED = 1 << 16
"""Bytes at the beginning that tell whether deflating is worth a try."""


def constant_buffer(name: str, elements: np.ndarray, dtype: DType) -> Buffer:
    """A constant with these elements, given in the storage dtype of `dtype` (or as NumPy's bool).

    >>> constant_buffer("c", np.eye(2, dtype=np.float32), resolve("float32")).num_bytes
    16
    """
    content = np.ascontiguousarray(elements).tobytes()
    return Buffer(name, elements.shape, dtype, MemorySpace.shared_hbm, None, content)


def elements_of(buffer: Buffer) -> np.ndarray:
    """The elements of a constant, in the storage dtype; read-only."""
    assert buffer.content is not None, f"{buffer.name} is not a constant"
    return np.frombuffer(buffer.content, buffer.dtype.storage).reshape(buffer.shape)


def is_turn(buffer: Buffer) -> bool:
    """Whether it is the number of a dynamic loop's turn: one int32, which a register holds."""
    return buffer.content is not None and buffer.dtype is int32 and buffer.num_bytes == 4


def is_scalar(buffer: Buffer) -> bool:
    """Whether it is what a scalar of the device holds: one int32 that scalar_load puts there."""
    is_cell = buffer.space is MemorySpace.private_hbm and buffer.shape == (1, 1)
    return is_cell and buffer.content is None and buffer.dtype is int32


def digest_of(content: bytes) -> str:
    """The identity of a content: the first 64 bits of its SHA-256."""
    return sha256(content).hexdigest()[:16]


# -- as numbers -----------------------------------------------------------------------------------


def as_numbers(buffer: Buffer) -> list[float] | None:
    """The elements of a small constant, row by row; None where numbers do not say them."""
    if buffer.size > FEW or len(buffer.content or b"") != buffer.num_bytes:
        return None
    flat = elements_of(buffer).reshape(-1)
    shortest = flat.dtype in (np.float32, np.float16)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        numbers = [float(str(n)) for n in flat] if shortest else (
            flat.tolist() if flat.dtype.kind in "iu" else flat.astype(np.float64).tolist()
        )  # fmt: skip
    numbers = [plain_number(n) for n in numbers]
    return numbers if from_numbers(numbers, buffer.dtype) == buffer.content else None


def from_numbers(numbers: Sequence[float], dtype: DType) -> bytes | None:
    """The bytes of these elements, rounded to the dtype; None where one does not fit it."""
    storage = dtype.storage
    whole = storage.kind in "iu"
    if not all(isinstance(n, int if whole else (int, float)) for n in numbers):
        return None
    try:
        wide = np.array(numbers, np.int64 if whole else np.float64)
    except OverflowError:
        return None
    with np.errstate(all="ignore"):
        made = wide.astype(storage)
        back = made.astype(wide.dtype)
        fits = (back == wide) if whole else np.isfinite(back) | ~np.isfinite(wide)
    return made.tobytes() if fits.all() else None


# -- as text --------------------------------------------------------------------------------------


def as_text(content: bytes) -> tuple[str, list[str]]:
    """How the text says the bytes, "base64" or "deflated", and the lines that say them."""
    head = content[:PROBED]
    packed, smaller = content, 2 * len(zlib.compress(head, 1)) < len(head)
    if smaller:
        packed = zlib.compress(content, 9)
        smaller = 2 * len(packed) < len(content)
    text = b64encode(packed if smaller else content).decode()
    lines = [text[at : at + COLUMNS] for at in range(0, len(text), COLUMNS)]
    return "deflated" if smaller else "base64", lines


def from_text(way: str, text: str, num_bytes: int) -> bytes:
    """The bytes that `as_text` wrote, which should be `num_bytes`: of more, one. Raises ValueError
    where the text is not base 64 or not deflated."""
    try:
        packed = b64decode("".join(text.split()), validate=True)
        if way == "base64":
            return packed
        unpacking = zlib.decompressobj()
        content = unpacking.decompress(packed, num_bytes + 1)
    except binascii.Error:
        raise ValueError("it has other characters, or another length") from None
    except zlib.error:
        raise ValueError("it is damaged") from None
    if len(content) <= num_bytes and not (unpacking.eof and not unpacking.unused_data):
        raise ValueError("it ends too early" if not unpacking.eof else "something follows its end")
    return content
