"""What can go wrong with a winner."""

from __future__ import annotations

from neuroncore.errors import KernelError


class ProofError(KernelError):
    """A winner that is not what it was found to be. A mistake of ours, never the user's."""
