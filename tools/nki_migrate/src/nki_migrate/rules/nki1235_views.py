"""NKI1235: `nl.expand_dims` and `nl.broadcast_to`."""

from nki_migrate.rules.nki1162_methods import rewrite_broadcast_to
from nki_migrate.rules.rule import Hooks

HOOKS = Hooks(calls={"nl.broadcast_to": rewrite_broadcast_to})
