"""The module nki.language of a version."""

from nki_beta2.nl.names import NKIObject, language_contents

__all__ = ["NKIObject", "language_contents"]
