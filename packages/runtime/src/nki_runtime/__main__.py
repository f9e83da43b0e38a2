"""`python -m nki_runtime` is `nki-run`."""

import sys

from nki_runtime.cli import main

sys.exit(main())
