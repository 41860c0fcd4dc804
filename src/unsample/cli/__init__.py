"""The command ``unsample``: a file for each verb, which parses, calls and prints.

`start` is the way in. Verbs are made of what `unsample.cli.console` and `unsample.cli.options` hold,
those of the laboratory too.
"""

from unsample.cli._start import start

__all__ = ["start"]
