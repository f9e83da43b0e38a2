"""`python -m nki_migrate`."""

from nki_migrate.cli import main

if __name__ == "__main__":
    main()
