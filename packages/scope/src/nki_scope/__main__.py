"""`python -m nki_scope` is the command `nki-scope`."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the working folder, which `-m` puts first: a file there is not our import

from neuroncore.commands.interruption import entry_point

main = entry_point("nki-scope", "nki_scope.cli")

if __name__ == "__main__":
    sys.exit(main())
