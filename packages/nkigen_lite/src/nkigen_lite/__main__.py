"""`python -m nkigen_lite` is `nkigen`."""

from nkigen_lite.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
