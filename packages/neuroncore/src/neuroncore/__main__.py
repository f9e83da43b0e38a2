"""`python -m neuroncore` prints the reference of the instructions."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the working folder, which `-m` puts first: a file there is not our import

from neuroncore.isa.command import main

if __name__ == "__main__":
    sys.exit(main())
