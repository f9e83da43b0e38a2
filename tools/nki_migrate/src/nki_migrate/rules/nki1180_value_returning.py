"""NKI1180: `nisa` calls write to a destination."""

from nki_migrate.rewriting.operations.instructions import INSTRUCTIONS, instruction
from nki_migrate.rules.rule import Hooks

# rules of their own: NKI1194, NKI1197
_ELSEWHERE = {"tensor_reduce", "max8", "nc_find_index8", "nc_match_replace8"}


HOOKS = Hooks(
    calls={f"nisa.{name}": instruction for name in INSTRUCTIONS if name not in _ELSEWHERE}
)
