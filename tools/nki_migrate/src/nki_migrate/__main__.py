"""`python -m nki_migrate`."""

import sys

from nki_migrate.cli import main

if __name__ == "__main__":
    sys.exit(main())
