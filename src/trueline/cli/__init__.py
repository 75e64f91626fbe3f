"""The command line: thin, one file per command."""

from trueline.cli.main import main

__all__ = ["main"]
