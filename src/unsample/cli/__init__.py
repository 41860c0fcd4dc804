"""The command ``unsample``: a file for each verb, which parses, calls and prints.

`start` is the way in. Verbs, those of the laboratory too, are made of what `unsample.cli.console`
and `unsample.cli.options` hold.
"""

from unsample.cli._start import start

__all__ = ["start"]
