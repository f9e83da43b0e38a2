"""Every name that a number format goes by, and the way from any of them to the format."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping

import numpy as np

from nki_dtypes import formats
from nki_dtypes.errors import UnknownDTypeError
from nki_dtypes.formats import ALL, WIDE, DType

_SHORT_NAMES: dict[DType, str] = {
    formats.bool_: "bool bool8 boolean b1",
    formats.int8: "i1 s8 char",
    formats.int16: "i2 i16 s16 short",
    formats.int32: "i4 i32 s32",
    formats.uint8: "u1 ubyte",
    formats.uint16: "u2 u16 ushort",
    formats.uint32: "u4 u32",
    formats.float16: "f2 f16 fp16 half",
    formats.bfloat16: "bf16",
    formats.float32: "f4 f32 fp32 single",
    formats.tfloat32: "tf32 float32r fp32r",  # float32r: the compiler's name
    formats.float8_e4m3: "float8e4 fp8_e4m3 fp8e4m3 f8e4m3 f8_e4m3 float8e4m3 e4m3",
    formats.float8_e4m3fn: "fp8_e4m3fn fp8e4m3fn f8e4m3fn f8_e4m3fn float8e4m3fn e4m3fn",
    formats.float8_e5m2: "float8e5 fp8_e5m2 fp8e5m2 f8e5m2 f8_e5m2 float8e5m2 e5m2",
    formats.float8_e8m0fnu: "float8_e8m0 fp8_e8m0 fp8_e8m0fnu f8e8m0 f8e8m0fnu f8_e8m0fnu e8m0",
    formats.float8_e5m2_x4: "fp8_e5m2_x4",
    formats.float8_e4m3fn_x4: "fp8_e4m3fn_x4",
    formats.float4_e2m1fn_x4: "fp4_e2m1fn_x4 mxfp4_x4",
}

ALIASES: dict[str, DType] = {
    alias: dtype for dtype in ALL for alias in (dtype.name, *_SHORT_NAMES[dtype].split())
}
"""Every accepted string, without its module (`nl.`, `torch.`, …), to its format."""

_MODULES = frozenset(
    {
        "nl", "nki.language", "neuronxcc.nki.language", "nki.dtype", "nki_dtypes",
        "ml_dtypes", "np", "numpy", "torch", "jax", "jax.numpy", "jnp",
    }
)  # fmt: skip

_USE_INSTEAD: dict[str, str] = {
    "float64": "NKI has no 64-bit types: use float32, e.g. array.astype(np.float32)",
    "int64": "NKI 0.7 is the first with 64-bit integers: use int32 where the values fit",
    "uint64": "NKI 0.7 is the first with 64-bit integers: use uint32 where the values fit",
    "complex64": "NKI has no complex numbers: keep real and imaginary parts in two float32 tensors",
    "i8": "i8 is int64 to NumPy and int8 to compilers: write int8 (NKI has no 64-bit types)",
    "u8": "u8 is uint64 to NumPy and uint8 to compilers: write uint8 (NKI has no 64-bit types)",
    "float8_e4m3fnuz": "the fnuz formats are another vendor's: use float8_e4m3 or float8_e4m3fn",
    "float8_e5m2fnuz": "the fnuz formats are another vendor's: use float8_e5m2",
    "float4_e2m1fn": "4-bit floats exist only packed by four: use float4_e2m1fn_x4 and pack_x4",
    "fp8": "there are several 8-bit floats: float8_e4m3, float8_e4m3fn or float8_e5m2",
}
_USE_INSTEAD |= {
    other: _USE_INSTEAD[name]
    for name, others in {
        "float64": "f8 f64 fp64 double float float128 longdouble",
        "int64": "i64 s64 long int longlong",
        "uint64": "u64 ulong uint ulonglong",
        "complex64": "complex64 complex128 complex c8 c16",
        "float4_e2m1fn": "fp4 float4 f4e2m1fn fp4_e2m1fn float4_e2m1",
        "fp8": "float8 f8e4",
    }.items()
    for other in others.split()
}

# Names already looked up. Bounded: a program that makes up new objects must not fill the memory.
_SEEN: dict[object, DType] = {}
_MOST_SEEN = 512


def resolve(x: object, takes_64_bits: bool = False) -> DType:
    """The number format that `x` names.

    Takes a `DType` (also the 4-bit lane type, which nothing else names); a string (`"bf16"`,
    `"nl.bfloat16"`, `"torch.float16"`); a NumPy or ml_dtypes dtype or scalar type; a torch or JAX
    dtype, recognised by its name, so neither is imported; any object whose `name` or `__name__`
    is one of the names. `takes_64_bits`: "int64" and "uint64" and NumPy's types of these names too,
    as NKI 0.7 has them.

    Raises `UnknownDTypeError` with near names, and says what to use instead of a 64-bit type.
    """
    if takes_64_bits and (wide := _WIDE_NAMES.get(_bare_name(x))) is not None:
        return wide
    try:
        return _SEEN[x]
    except (KeyError, TypeError):
        pass  # KeyError: not looked up before; TypeError: x is not hashable
    dtype = x if isinstance(x, DType) else _look_up(x)
    if len(_SEEN) < _MOST_SEEN:
        with contextlib.suppress(TypeError):
            _SEEN[x] = dtype
    return dtype


_WIDE_NAMES = {d.name: d for d in WIDE}


def _look_up(x: object) -> DType:
    name = _bare_name(x)
    found = ALIASES.get(name)
    if found is None or (isinstance(x, np.dtype) and not x.isnative):
        raise _unknown(x, name)
    return found


def _bare_name(x: object) -> str:
    """The name of `x` in lower case, without module and NumPy's byte-order mark."""
    text = x if isinstance(x, str) else _name_of(x)
    module, _, name = text.strip().lower().rpartition(".")
    if module and module not in _MODULES:
        return text
    return name[1:] if name[:1] in ("<", "=", "|") else name


def _name_of(x: object) -> str:
    if isinstance(x, np.dtype) and x.names is not None and len(x.names) == 1:
        return x.names[0]  # words of a packed type: see DType.words
    for attribute in ("name", "__name__"):
        name = getattr(x, attribute, None)
        if isinstance(name, str):
            return name
    text = repr(x) if type(x).__module__.partition(".")[0] == "torch" else ""
    return text if text.startswith("torch.") else ""


def _unknown(x: object, name: str) -> UnknownDTypeError:
    if isinstance(x, np.dtype) and not x.isnative:
        hint = "NKI memory is little-endian: array.astype(array.dtype.newbyteorder('='))"
    else:
        hint = _USE_INSTEAD.get(name) or _near(name)
    shown = _shown(x)
    return UnknownDTypeError(
        f"{shown} is not an NKI dtype", expected=_EXPECTED, got=f"{shown} ({_kind(x)})", hint=hint
    )


def _shown(x: object) -> str:
    """The user's text, shortened; the object's own repr may be long or may itself fail."""
    try:
        text = repr(x)
    except Exception:
        text = f"<{type(x).__name__}>"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _near(name: str) -> str:
    close = difflib.get_close_matches(name[:40], ALIASES, n=3, cutoff=0.6)
    names = list(dict.fromkeys(ALIASES[c].name for c in close))
    return f"did you mean {' or '.join(names)}?" if names else ""


def _kind(x: object) -> str:
    return "a string" if isinstance(x, str) else f"of type {type(x).__qualname__}"


_EXPECTED = f"one of {', '.join(d.name for d in ALL)}, or an alias of one"


class _StorageDTypes(Mapping[object, np.dtype]):
    """Any name of a number format → the NumPy dtype that stores it. Read-only."""

    def __getitem__(self, key: object) -> np.dtype:
        return resolve(key).storage

    def __iter__(self) -> Iterator[str]:
        return iter(ALIASES)

    def __len__(self) -> int:
        return len(ALIASES)

    def __repr__(self) -> str:
        return f"STORAGE_DTYPES({', '.join(f'{d.name}={d.storage}' for d in ALL)})"


STORAGE_DTYPES: Mapping[object, np.dtype] = _StorageDTypes()
"""Accepts what `resolve` accepts; iterating gives the known strings.

bool_ is stored as uint8, tfloat32 as float32, packed types as uint32 (8-bit lanes) or uint16
(4-bit lanes); every other type as the NumPy or ml_dtypes type of the same name.
"""
