"""`python -m nki_runtime` is the command `nki-run`."""

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    sys.path[0] = os.devnull  # until the program's folder is there; not the working folder

from nki_runtime.cli import main

if __name__ == "__main__":
    sys.exit(main())
