"""NKI1108: types and enumerations of the compiler."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
import neuronxcc.nki as nki
from neuronxcc.nki.isa.constants import oob_mode
from neuronxcc.starfish.penguin.targets.nki import private
"""
_GOOD = """
import nki
from nki.isa import oob_mode
# TODO(nki-migrate NKI1108): `neuronxcc.starfish.penguin.targets.nki` is the compiler's own: \
enumerations are in `nki.isa`, dtypes in `nl`
from neuronxcc.starfish.penguin.targets.nki import private
"""

RULE = Rule(
    id="NKI1108",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="enumerations and types of the compiler",
    page="""\
Old: `from neuronxcc.nki.isa.constants import oob_mode`, `from neuronxcc.starfish… import …`

New: `from nki.isa import oob_mode`; an import that only annotates parameters goes with the
annotations; dtypes are those of `nl`, by hand
""",
    examples=(Example.of(_BAD, _GOOD),),
)
