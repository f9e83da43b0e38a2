"""Limits of instructions that take ALU operations. `attr` names the attribute that holds one."""

from __future__ import annotations

from typing import Any

from neuroncore.activations import ACTIVATIONS
from neuroncore.enums import Engine
from neuroncore.errors import AttributeValueError, DTypeError, EngineError, Violation
from neuroncore.instructions._limits import rule
from neuroncore.instructions._record import Call, Limit

MATH = "NKI: supported math operators"


def integers_only(attr: str, /, *names: str, **breaks: Any) -> Limit:
    """Bit operations take integer tiles of one width."""

    def legal(c: Call) -> bool:
        op = getattr(c, attr)
        if op is None or not op.is_bitvec:
            return True
        tiles = [c.tiles[n] for n in names if n in c.tiles]
        return all(s.dtype.is_integer for s in tiles) and len({s.dtype.itemsize for s in tiles}) < 2

    return rule(
        legal,
        lambda c: Violation(
            DTypeError,
            f"{getattr(c, attr).name} works on raw integer bits",
            names[0],
            expected="integer tiles of one width",
            got=", ".join(f"{n} {c.tiles[n].dtype}" for n in names if n in c.tiles),
            rule=f"{MATH}, bitvec",
        ),
        **breaks,
    )


def bitvec_on_vector(attr: str, /, **breaks: Any) -> Limit:
    """Bit operations run on VectorE only."""
    return rule(
        lambda c: (
            getattr(c, attr) is None or not getattr(c, attr).is_bitvec or c.engine is Engine.vector
        ),
        lambda c: Violation(
            EngineError,
            f"{getattr(c, attr).name} runs on the vector engine only",
            "engine",
            expected="vector",
            got=c.engine.name,
            rule=f"{MATH}, bitvec",
        ),
        **breaks,
    )


def known_to_hardware(attr: str, /, **breaks: Any) -> Limit:
    """Rejects operations that documents call unsupported, or that need a later generation."""

    def legal(c: Call) -> bool:
        op = getattr(c, attr)
        if op is None:
            return True
        documented = op.documented or c.version == (0, 1)
        return documented and op.first_generation <= c.target.generation

    def violation(c: Call) -> Violation:
        op = getattr(c, attr)
        needs = f" from gen{op.first_generation} on" if op.documented else ""
        return Violation(
            AttributeValueError,
            f"{op.name} is not an operation of {c.target.name}",
            attr,
            expected=f"a supported math operator{needs}",
            got=op.name,
            hint="multiply by nisa.reciprocal" if op.name == "divide" else None,
            rule=MATH,
        )

    return rule(legal, violation, **breaks)


def known_to_version(attr: str, /, **breaks: Any) -> Limit:
    """Rejects operations that came with a later version [NKI 0.4: release notes, new opcodes]."""
    return rule(
        lambda c: getattr(c, attr) is None or getattr(c, attr).since <= c.version,
        lambda c: Violation(
            AttributeValueError,
            f"{getattr(c, attr).name} came with NKI {_dotted(getattr(c, attr).since)}"
            " as an ALU operation",
            attr,
            expected="an ALU operation of the chosen version",
            got=f"{getattr(c, attr).name} in NKI {_dotted(c.version)}",
            hint="it is a function of nisa.activation in every version"
            if getattr(c, attr).name in ACTIVATIONS
            else None,
            rule=MATH,
        ),
        **breaks,
    )


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
