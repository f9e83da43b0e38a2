"""NKI1226: `nl.square` is an activation."""

from nki_migrate.rules.nki1225_unary import activation_of
from nki_migrate.rules.rule import Hooks

HOOKS = Hooks(calls={"nl.square": activation_of("square", "NKI1226")})
