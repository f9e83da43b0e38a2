"""`python -m nkigym` is the command `nkigym`."""

from nkigym.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
