"""NKI1198: instructions whose result is left to the reader."""

from neuroncore.surface import instruction_names
from nki_migrate.rules.rule import Hooks

OLDEST = "0.2"  # the first version whose instructions take their destination


def _message(canonical: str) -> str:
    if canonical.partition(".")[2] in instruction_names(OLDEST):
        return f"`{canonical}` writes to `dst=` from 0.2 on: allocate the result"
    return f"`{canonical}` is gone: 0.2 and later have no such instruction"


HOOKS = Hooks(message=_message)
