"""The program ``tstar``, and ``python -m tstar``."""

import sys


def main() -> None:
    """Run the commands, or say in one line what they need."""
    try:
        from tstar.lab.cli.app import main as run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit("The tstar commands need typer and rich: pip install typer rich")
    run()


if __name__ == "__main__":
    main()
