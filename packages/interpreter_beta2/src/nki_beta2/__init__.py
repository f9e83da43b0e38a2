"""The NKI 0.2 to 0.7 language on the machine.

>>> from nki_beta2 import language
>>> nki, nl, nisa = language("0.6")
"""

from nki_beta2.backend import BACKEND, Beta2, language
from nki_beta2.kernel.jit import Kernel
from nki_beta2.kernel.tensor import NkiTensor

__all__ = ["BACKEND", "Beta2", "Kernel", "NkiTensor", "language"]
