"""Python's errors in a kernel, as kernel errors with place, caret and hint.

Checking arguments before every call would cost each of them; so functions of the language run
first, and after an error of Python the values are checked: an argument that is not
of the kind its parameter takes, a call that does not fit its signature, an operator or attribute
that a value of the language does not have. Other errors are bugs of this package and stay.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from neuroncore.errors import (
    CapacityError,
    DTypeError,
    KernelError,
    Place,
    SignatureError,
    UnsupportedError,
    place_of,
)
from neuroncore.memory import View
from neuroncore.spec import as_dtype
from nki_beta1.access.access import Access
from nki_beta1.access.indirect import Offset
from nki_beta1.index.expression import Index
from nki_beta1.index.mask import Mask
from nki_beta1.values import attributes, special_methods
from nki_beta1.values.attributes import FUNCTIONS
from nki_beta1.values.frames import is_of_a_library, is_ours
from nki_beta1.values.special_methods import HINT as NUMPY_HINT
from nki_beta1.values.special_methods import OPERAND, OPERATORS, WORDS, described


def explain(wrong: Exception) -> KernelError | None:
    """Python's error in a kernel as a kernel error; None for a bug of this package."""
    site, inside = _site(wrong.__traceback__)
    if site is None:
        return None
    place = place_of(site.tb_frame, site.tb_lasti)
    if inside is not None and inside.tb_frame.f_globals is not vars(special_methods):
        return _bad_argument(inside.tb_frame, place) or _too_large(wrong, place)
    if not isinstance(wrong, (TypeError, AttributeError)):
        return None  # the kernel's own assert or raise
    return _bad_call(str(wrong), place) or _bad_value(str(wrong), place)


def _too_large(wrong: Exception, place: Place) -> CapacityError | None:
    """A number or a tensor that nothing here can hold."""
    if isinstance(wrong, OverflowError):
        return CapacityError("a number is too large", got=str(wrong), place=place)
    if isinstance(wrong, MemoryError):
        return CapacityError("a tensor is too large for this computer", place=place)
    return None


def _site(trace: TracebackType | None) -> tuple[TracebackType | None, TracebackType | None]:
    """The kernel's innermost frame, and the frame of ours that it called, if it did."""
    site = inside = None
    while trace is not None:
        if is_ours(trace.tb_frame):
            passes_on = trace.tb_frame.f_globals is vars(attributes)
            inside = inside or (None if passes_on else trace)
        elif not is_of_a_library(trace.tb_frame):
            site, inside = trace, None
        trace = trace.tb_next
    return site, inside


# -- a call that does not fit the signature -------------------------------------------------------

_CALL = re.compile(r"(?P<function>(?:nl|nisa|nki|t)\.\w+)\(\) (?P<what>.*)", re.DOTALL)


def _bad_call(message: str, place: Place) -> SignatureError | None:
    found = _CALL.fullmatch(message)
    if found is None:
        return None
    name = found["function"]
    return SignatureError(
        _COUNTED.sub(_without_self, found["what"]) if name.startswith("t.") else found["what"],
        expected=_shown(name),
        instruction=name,
        place=place,
        hint="what stands after * is given by name"
        if "given" in message and "*" in (_shown(name) or "")
        else None,
        rule=f"NKI 0.1: signature of {name}",
    )


_COUNTED = re.compile(r"takes (\d+) positional arguments? but (\d+) (?:was|were) given")


def _without_self(counts: re.Match[str]) -> str:
    takes, given = int(counts[1]) - 1, int(counts[2]) - 1
    return (
        f"takes {takes} positional argument{'s' * (takes != 1)} but {given} "
        f"{'was' if given == 1 else 'were'} given"
    )


def _shown(name: str) -> str | None:
    """The signature without **kwargs, which take nothing."""
    function = FUNCTIONS.get(name)
    if function is None:
        return None
    parameters = [
        p.replace(annotation=p.empty)
        for p in inspect.signature(function).parameters.values()
        if p.kind is not p.VAR_KEYWORD and p.name != "self"
    ]
    return f"{name}{inspect.Signature(parameters)}"


# -- an argument of another kind ------------------------------------------------------------------


def _is_tile(value: Any) -> bool:
    return isinstance(value, (View, Access))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_))


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _are_whole(value: Any) -> bool:
    return all(map(_is_whole, value if isinstance(value, (tuple, list)) else (value,)))


def _is_dtype(value: Any) -> bool:
    try:
        return value is None or bool(as_dtype(value))
    except DTypeError:
        return False


def _is_mask(value: Any) -> bool:
    return value is None or isinstance(value, (Mask, bool, np.bool_))


def _is_operand(value: Any) -> bool:
    return _is_tile(value) or _is_number(value) or isinstance(value, (Index, Offset))


Kind = tuple[str, Callable[[Any], bool]]

_TILE: Kind = ("a tile", _is_tile)
_OPERAND: Kind = ("a tile or a number", _is_operand)
_NUMBER: Kind = ("a number", _is_number)
_SIZE: Kind = ("a positive compile-time int", lambda v: _is_whole(v) and v > 0)
_VALUE: Kind = ("a tile or a number", lambda v: _is_tile(v) or _is_number(v))
_WHOLE: Kind = ("a compile-time int", _is_whole)
_WHOLES: Kind = ("a compile-time int, or a tuple or list of them", _are_whole)
_DTYPE: Kind = ("a dtype, such as nl.float32", _is_dtype)

_KINDS: dict[str, Kind] = {
    "x": _TILE, "w": _TILE, "a": _TILE, "src": _TILE, "dst": _TILE, "data": _TILE,
    "indices": _TILE, "input_data": _TILE, "y": _OPERAND, "value": _OPERAND, "rate": _OPERAND,
    "seed": ("an int or a (1, 1) tile", lambda v: _is_tile(v) or _is_whole(v)),
    "condition": ("a tile, or a comparison of index expressions",
                  lambda v: _is_tile(v) or isinstance(v, Mask)),
    "dtype": _DTYPE, "compute_dtype": _DTYPE,
    "mask": ("a comparison of index expressions, such as (i_p < rows)", _is_mask),
    "axis": _WHOLES, "axes": _WHOLES, "shape": _WHOLES, "program_axes": _WHOLES,
    "start": _WHOLE, "size": _WHOLE, "count": _WHOLE,
    "cores": ("nl.nc(n)", lambda v: type(v).__name__ == "GridDim"),
    "n": _NUMBER, "epsilon": _NUMBER, "fill_value": _NUMBER,
    "transpose_x": ("True or False", lambda v: isinstance(v, (bool, np.bool_))),
    "constant": ("an array of numbers", lambda v: isinstance(v, np.ndarray)),
}  # fmt: skip
"""What a parameter of that name takes, in words and as a question."""

_KINDS_OF: dict[tuple[str, str], Kind] = {
    ("nl.where", "x"): _OPERAND, ("nl.mod", "x"): _OPERAND, ("nl.matmul", "y"): _TILE,
    ("nl.fmod", "x"): _VALUE, ("nl.fmod", "y"): _VALUE,
    ("nl.atomic_rmw", "value"): _VALUE,
    ("nl.broadcast_to", "shape"): ("a tuple of compile-time ints",
                                   lambda v: isinstance(v, (tuple, list)) and _are_whole(v)),
    ("t.broadcast_to", "shape"): ("a tuple of compile-time ints",
                                  lambda v: isinstance(v, (tuple, list)) and _are_whole(v)),
    ("t.expand_dims", "axis"): _WHOLE,
    ("nl.program_id", "axis"): _WHOLE, ("nl.expand_dims", "axis"): _WHOLE,
    ("nl.par_dim", "size"): _WHOLE, ("nl.nc", "cores"): _WHOLE,
    ("nl.shared_identity_matrix", "n"): _SIZE,
}  # fmt: skip
"""Where a function's parameter takes something else than others of its name."""


def _bad_argument(frame: FrameType, place: Place) -> SignatureError | None:
    """The first argument that is not of its parameter's kind."""
    code = frame.f_code
    made_for = frame.f_locals["name"] if "name" in code.co_freevars else None
    known = [n for n, f in FUNCTIONS.items() if getattr(f, "__code__", None) is code]
    name = f"nl.{made_for}" if f"nl.{made_for}" in known else "".join(known[:1])
    if not name:
        return None
    function = FUNCTIONS[name]
    for position, operand, words, value in _mismatches(name, function, frame.f_locals):
        return SignatureError(
            f"{operand} cannot be {described(value)}",
            expected=words,
            got=repr(value).partition("\n")[0][:80],
            hint=OPERAND if isinstance(value, np.ndarray) else None,
            operand=operand,
            position=position,
            instruction=name,
            place=place,
            rule=f"NKI 0.1: {name}",
        )
    return None


def _mismatches(
    name: str, function: Callable[..., Any], values: Mapping[str, Any]
) -> Iterator[tuple[int, str, str, Any]]:
    parameters = inspect.signature(function).parameters.items()
    named = ((operand, p) for operand, p in parameters if operand != "self")
    for position, (operand, parameter) in enumerate(named):
        kind = _KINDS_OF.get((name, operand)) or _KINDS.get(operand)
        value = values.get(operand)
        is_left_out = value is None and parameter.default is None
        if kind is not None and not is_left_out and not kind[1](value):
            yield position, operand, kind[0], value


# -- a value that cannot do this ------------------------------------------------------------------

_KIND = "|".join(WORDS)
_NAMED = re.compile(rf"'(?P<quoted>{_KIND})'(?: object)?|\btype (?P<bare>{_KIND})\b")
_UFUNC = re.compile(r"operand '(\w+)' does not support ufuncs")
_OPERATOR = re.compile(
    r"unsupported operand type\(s\) for (\S+)(?: or pow\(\))?: '(\S+)' and '(\S+)'"
)
_CONCATENATED = re.compile(rf'can only concatenate (\w+) \(not "({_KIND})"\) to ')
_CONCATENATED_ARRAY = "Concatenation operation is not implemented for NumPy arrays"
"""What Python tries last for `left + right`: to join sequences. NumPy does not say with what."""

_INSTEAD = {
    "//": "use nl.floor(nl.divide(x, y)) for tiles; index expressions take // with ints",
    "@": "use nl.matmul(x, y), or nisa.nc_matmul(stationary, moving)",
    "/": "index expressions are whole numbers: divide them with //",
}


def _bad_value(message: str, place: Place) -> KernelError | None:
    """An operator, conversion or attribute that values of the language do not have."""
    if message.startswith(_CONCATENATED_ARRAY):
        return _no_operation("a NumPy array + a value that is not an array", OPERAND, place)
    if combined_with := _CONCATENATED.match(message):
        left, right = combined_with.groups()
        return _no_operation(f"{_worded(left)} + {_worded(right)}", None, place)
    if _NAMED.search(message) is None:
        return None
    message = message.removesuffix(" and no __dict__ for setting new attributes")
    what = _NAMED.sub(lambda kind: WORDS[kind["quoted"] or kind["bare"]], message)
    hint = None
    if operator := _OPERATOR.search(message):
        symbol, left, right = operator.groups()
        symbol = symbol.removesuffix("=")
        what = f"{_worded(left)} {symbol} {_worded(right)} is not an operation"
        hint = _INSTEAD.get(symbol)
    if ufunc := _UFUNC.search(message):
        what, hint = f"a NumPy function of {_worded(ufunc[1])}", NUMPY_HINT
    return UnsupportedError(what, hint=hint, place=place, rule=OPERATORS)


def _no_operation(what: str, hint: str | None, place: Place) -> UnsupportedError:
    return UnsupportedError(f"{what} is not an operation", hint=hint, place=place, rule=OPERATORS)


def _worded(kind: str) -> str:
    article = "an" if kind[0] in "aeiou" else "a"
    return WORDS.get(kind, "None" if kind == "NoneType" else f"{article} {kind}")


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


def translated(text: str | None) -> str | None:
    """A part of an error in the terms of 0.1."""
    for later, now in PHRASES.items():
        text = text and text.replace(later, now)
    return text


def translate_error(error: KernelError) -> None:
    """Reword an error of the machine in the terms of 0.1."""
    error.hint, error.rule = translated(error.hint), translated(error.rule)
    error.expected = translated(error.expected)
