"""The command ``unsample``: one file for each verb, which parses, calls and prints."""

from unsample.cli._main import main

__all__ = ["main"]
