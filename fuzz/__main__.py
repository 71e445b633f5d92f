"""`python -m fuzz` is the `pgduel` command."""

from fuzz.cli import main

if __name__ == "__main__":
    main()
