"""The NKI 0.1 language on the machine.

Under the switch of nki-runtime this answers `import neuronxcc.nki`. Without it, `nki`, `nl`, `nisa`
and `nt` are the same modules:

    from nki_beta1 import nki, nl
"""

from nki_beta1.backend import BACKEND, Beta1
from nki_beta1.launch.kernel import DEFAULT, Kernel
from nki_beta1.tensor.tile import Tile

_modules = BACKEND.modules(DEFAULT)
nki = _modules["neuronxcc.nki"]
nl = _modules["neuronxcc.nki.language"]
nisa = _modules["neuronxcc.nki.isa"]
nt = _modules["neuronxcc.nki.typing"]

__all__ = ["BACKEND", "Beta1", "Kernel", "Tile", "nisa", "nki", "nl", "nt"]
