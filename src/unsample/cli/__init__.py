"""The command ``unsample``, on click: a file for each verb, which parses and calls.

A verb has the options of `unsample.cli.options`, named like the arguments of the function that it
calls, to which they are passed on; `unsample.cli.console` says results and failures. The library is
loaded when a verb is called.
"""
