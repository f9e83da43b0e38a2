"""`python -m nkigym` is the command `nkigym`."""

from nkigym.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
