"""The command `pgduel` of a wheel."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Run the command line with the packages in `tree`, before all others of their names."""
    sys.path.insert(0, str(Path(__file__).with_name("tree")))
    os.environ["PYTHONSAFEPATH"] = "1"  # child processes never import from the user's working directory
    from fuzz.cli import main

    main()


if __name__ == "__main__":
    main()
