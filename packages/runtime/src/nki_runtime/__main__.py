"""`python -m nki_runtime` is the command `nki-run`."""

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    sys.path[0] = os.devnull  # until the program's folder is there; not the working folder

from neuroncore.commands.interruption import entry_point

main = entry_point("nki-run", "nki_runtime.cli", has_signals=True)

if __name__ == "__main__":
    sys.exit(main())
