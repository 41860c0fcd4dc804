"""The command ``unsample``: one file for each verb, which parses, calls and prints."""

from unsample.cli._app import main

__all__ = ["main"]
