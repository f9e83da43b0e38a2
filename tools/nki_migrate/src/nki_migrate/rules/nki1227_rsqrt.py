"""NKI1227: `nl.rsqrt` is an activation."""

from nki_migrate.rules.nki1225_unary import activation_of
from nki_migrate.rules.rule import Hooks

HOOKS = Hooks(calls={"nl.rsqrt": activation_of("rsqrt", "NKI1227")})
