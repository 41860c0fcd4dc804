"""Verbs that are listed by a name and a sentence, and loaded when one of them is called.

So ``--help``, completion and a misspelt verb cost what typer costs, whatever the verbs import.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from unsample._gone import gone
from unsample.cli._quick import take_quickly

_EXAMPLES = "**Examples**"


class Verb(TyperCommand):
    """What stands for a verb until it is called: where it is, and the first sentence of its help.

    ``place`` is ``module:function``, and its function is what `console_verb` or `result_verb` gave.
    """

    def __init__(self, name: str, place: str, sentence: str) -> None:
        super().__init__(name, short_help=sentence, add_help_option=False)
        self.place = place

    def load(self) -> Any:
        """Return the verb itself."""
        module, _, function = self.place.partition(":")
        verb = getattr(importlib.import_module(module), function)
        app = _typer()
        app.command(self.name, cls=_Loaded)(verb)
        command: Any = typer.main.get_command(app)
        take_quickly(command.params, verb.__annotations__)
        for parameter in command.params:
            parameter.display_type_rich = lambda ctx: None  # FILE, not FILE <str>
        return command


class _Quick:
    """A command that makes its own option ``--help``, which is quick as the others are."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        take_quickly([] if option is None else [option], {})
        return option


class _Loaded(_Quick, TyperCommand):
    """A verb whose help is written for the documentation, too, and shown here without marks."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for option in args:
            _refuse_gone(ctx, option)
        return list(super().parse_args(ctx, args))

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(_plain(self.help or ""))


class Verbs(_Quick, TyperGroup):
    """A group of verbs of which only the one that is called gets loaded."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        _refuse_gone(ctx, args[0])
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, Verb) else command, rest

    def load_all(self) -> None:
        """Load every verb, for those who want to know their options."""
        for name, command in list(self.commands.items()):
            if isinstance(command, Verb):
                self.commands[name] = command.load()


def _refuse_gone(ctx: Any, word: str) -> None:
    """End the command with the sentence about a verb or an option that went."""
    path, above = [word], ctx
    while above.parent is not None:
        path.insert(0, above.info_name)
        above = above.parent
    # Its name, not how it was called: ``python -m unsample`` is the same command.
    sentence = gone(" ".join(["unsample", *path]))
    if sentence is not None:
        ctx.fail(sentence)


def group_of(
    name: str,
    commands: Mapping[str, Any],
    options: Callable[..., None],
    *,
    completion: bool = False,
) -> Verbs:
    """Return a group; ``options`` are its own, and their docstring is its help."""
    app = _typer(cls=Verbs, name=name, no_args_is_help=True, add_completion=completion)
    app.callback()(options)
    group = typer.main.get_command(app)
    assert isinstance(group, Verbs)
    group.commands.update(commands)
    take_quickly(group.params, {})
    return group


def _typer(**settings: Any) -> typer.Typer:
    # Without rich, which takes as long to load as all the rest of a page of help.
    plain: dict[str, Any] = {
        "add_completion": False,
        "pretty_exceptions_enable": False,
        "rich_markup_mode": None,
        "context_settings": {"help_option_names": ["-h", "--help"]},
    }
    return typer.Typer(**plain | settings)


def _plain(text: str) -> str:
    r"""Return help without the marks of Markdown, each example on a line to be copied.

    >>> print(_plain("Do it.\n\n**Examples**\n\n`unsample do\n--it`").replace("\b", "(unfolded)"))
    Do it.
    <BLANKLINE>
    Examples:
    <BLANKLINE>
    (unfolded)
      unsample do --it
    """
    told, found, examples = text.replace("`", "").partition(_EXAMPLES)
    if not found:
        return told
    shown = [f"\b\n  {' '.join(one.split())}" for one in examples.strip().split("\n\n")]
    return "\n\n".join([told.rstrip(), "Examples:", *shown])
