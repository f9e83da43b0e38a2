"""Members of the closed sets that a language names: memories, engines, modes."""

from __future__ import annotations

from typing import ClassVar, NoReturn

from neuroncore.errors import absent_name


class Closed:
    """Beside Enum: a member has a name and a value, and says so where it is asked for more."""

    _elsewhere: ClassVar[dict[str, str]] = {
        "ptr": "regions of a memory are of NKI 0.2 and not modelled: nl.ndarray places a tensor, "
        "at an address= where it is given one",
        "gpsimd_dma": "nisa.dma_engine is an enum of its own from 0.3 on",
    }
    """What NKI has under a name in some version, and this machine does not."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # also while Enum makes the member, which has no name yet
            raise AttributeError(name)
        raise absent_name(repr(self), name, ("name", "value"), Closed._elsewhere.get(name))
