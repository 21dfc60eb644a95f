"""The command line: one file for each group of commands, nothing heavy imported before it is needed."""

from tstar.cli.app import main

__all__ = ["main"]
