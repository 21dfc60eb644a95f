"""The command line: one file for each group of commands; what is heavy is imported on use."""

from tstar.lab.cli.app import main

__all__ = ["main"]
