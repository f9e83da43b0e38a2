"""Errors about number formats."""

from __future__ import annotations


class DTypeError(ValueError):
    """A number format was asked for something it does not have or cannot do.

    `what` is the mistake in one line; `expected`, `got` and `hint` are its parts, kept as
    attributes so that a layer with access to the kernel's source line can render them with a caret.
    """

    def __init__(self, what: str, *, expected: str = "", got: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.got = got
        self.hint = hint

    def __str__(self) -> str:
        parts = [("expected", self.expected), ("got", self.got), ("hint", self.hint)]
        return "\n".join([self.what, *(f"    {label}: {text}" for label, text in parts if text)])

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.expected, self.got, self.hint)


class UnknownDTypeError(DTypeError, KeyError):
    """Nothing in NKI is called that. A `KeyError` too, because `STORAGE_DTYPES` is a mapping."""


def _rebuild(cls: type[DTypeError], what: str, expected: str, got: str, hint: str) -> DTypeError:
    return cls(what, expected=expected, got=got, hint=hint)
