"""Specs as text: `float32[4, 8] sbuf`, printed and read back.

    dtype[sizes] memory [@partition] [+bytes] [strides(…)] [immutable]

`@32` is the first partition of an on-chip operand, `+1024` the byte of its PSUM bank at which it
begins; `strides` count elements and are left out where they are row-major. Indirect views have no
text.
"""

from __future__ import annotations

import re

from neuroncore.engines import Space
from neuroncore.errors import KernelError
from neuroncore.spec import Spec, make_spec, row_major
from nki_dtypes import resolve

_TEXT = re.compile(
    r"(?P<dtype>\w+)\s*\[(?P<shape>[\d,\s]*)\]\s+(?P<space>\w+)"
    r"(?:\s+@(?P<start>\d+))?(?:\s+\+(?P<bank>\d+))?"
    r"(?:\s+strides\((?P<strides>[-\d,\s]*)\))?(?P<fixed>\s+immutable)?"
)


class SpecTextError(KernelError):
    """Text that is not a spec."""


def parse_spec(text: str) -> Spec:
    """The spec that `text` writes; the same object for the same spec.

    Raises SpecTextError for other text and nki_dtypes.UnknownDTypeError for an unknown dtype.

    >>> parse_spec("bfloat16[64, 2, 8] psum @64")
    (64, 2, 8), bfloat16, PSUM
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None or match["space"] not in Space.__members__:
        raise _misread(text)
    shape = _numbers(match["shape"])
    strides = row_major(shape) if match["strides"] is None else _numbers(match["strides"])
    if not shape or min(shape) < 1 or len(strides) != len(shape):
        raise _misread(text)
    return make_spec(
        shape,
        strides,
        resolve(match["dtype"]),
        Space[match["space"]],
        start=int(match["start"] or 0),
        mutable=not match["fixed"],
        bank_offset=int(match["bank"] or 0),
    )


def spec_text(spec: Spec) -> str:
    """The text that `parse_spec` reads back as `spec`; raises SpecTextError for indirect views.

    >>> spec_text(parse_spec("float32[4,8] sbuf strides(16, 2)"))
    'float32[4, 8] sbuf strides(16, 2)'
    """
    if spec.indirect is not None:
        raise SpecTextError("an indirect view has no text", got=repr(spec))
    parts = [f"{spec.dtype}[{_list(spec.shape)}]", spec.space.name]
    parts += [f"@{spec.start}"] if spec.start else []
    parts += [f"+{spec.bank_offset}"] if spec.bank_offset else []
    parts += [f"strides({_list(spec.strides)})"] if spec.strides != row_major(spec.shape) else []
    parts += [] if spec.mutable else ["immutable"]
    return " ".join(parts)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n.strip())


def _list(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def _misread(text: str) -> SpecTextError:
    return SpecTextError(
        f"cannot read {text!r} as a tensor",
        expected='text such as "float32[4, 8] sbuf @32 strides(16, 2)", in '
        + ", ".join(Space.__members__),
    )
