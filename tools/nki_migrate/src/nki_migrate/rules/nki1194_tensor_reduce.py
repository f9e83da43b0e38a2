"""NKI1194: `nisa.tensor_reduce` writes to a destination."""

from nki_migrate.rewriting.operations.instructions import instruction
from nki_migrate.rules.rule import Hooks

HOOKS = Hooks(calls={"nisa.tensor_reduce": instruction})
