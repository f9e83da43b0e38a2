"""Errors in the choice of a language; all are KernelErrors: the user can correct them."""

from __future__ import annotations

from neuroncore.errors import KernelError


class SwitchError(KernelError):
    """The switch can't be set as asked, or can't be left as asked."""


class ChoiceError(SwitchError):
    """A backend, NKI version, target or environment value that is unknown."""


class UnknownBackendError(ChoiceError, KeyError):
    """A backend that is not installed under this name."""


class ShadowError(SwitchError):
    """Another package already has the name, and `shadow` is off."""


class VendorPackageError(SwitchError):
    """The vendor's package was asked for and isn't installed, or has another version."""


class BackendError(SwitchError):
    """A backend is announced by an installed distribution but can't be loaded."""
