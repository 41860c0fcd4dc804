"""``unsample datasets``: what public data sets there are, and where."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unsample.cli.console import console_verb, progress_bar, say
from unsample.cli.options import AsJson

if TYPE_CHECKING:
    from unsample.lab.datasets import DatasetInfo

Name = Annotated[str, typer.Argument(metavar="NAME")]


@console_verb
def list_command(as_json: AsJson = False) -> None:
    """List the data sets, what is at hand on this machine, and the ranks that ship."""
    from unsample.lab import datasets

    records = [datasets.info(name) for name in datasets.names()]
    bundled = datasets.bundled_ranks()
    if as_json:
        rows = [
            _as_json(record) | {"bundled_ranks": list(bundled.get(record.name, ()))}
            for record in records
        ]
        say(json.dumps(rows, indent=2))
        return
    header = (
        f"{'name':13} {'users':>7} {'items':>7} {'interactions':>12}  {'at hand':8}  bundled ranks"
    )
    say(header)
    say("-" * len(header))
    for record in records:
        ranks = ", ".join(bundled.get(record.name, ())) or "none"
        say(
            f"{record.name:13} {record.users:>7,} {record.items:>7,} {record.interactions:>12,}  "
            f"{_at_hand(record):8}  {ranks}"
        )


@console_verb
def info_command(name: Name, as_json: AsJson = False) -> None:
    """Show a data set's size, licence, citation, files, and what is at hand."""
    from unsample.lab import datasets

    record = datasets.info(name)
    if as_json:
        say(json.dumps(_as_json(record), indent=2))
        return
    say(f"{record.name}: {record.title}", bold=True)
    say(f"{record.users:,} users, {record.items:,} items, {record.interactions:,} interactions")
    say(f"home      {record.home}")
    say(f"licence   {record.licence}")
    for citation in record.citations:
        say(f"cite      {citation}")
    say(f"at hand   {_at_hand(record)}{': ' + record.note if record.note else ''}")
    for file in record.files:
        say(f"file      {file.name}  {file.path or 'not at hand'}")
        say(f"          {file.address}")


@console_verb
def fetch_command(name: Name, as_json: AsJson = False) -> None:
    """Download a data set's files, verify them, and say where they are."""
    from unsample.lab import datasets

    with progress_bar(f"fetching {name}") as bar:

        def update(file: str, done: int, total: int | None) -> None:
            if bar is not None and total:
                bar(done, total, file)

        paths = datasets.fetch(name, progress=update)
    if as_json:
        say(json.dumps({file: str(path) for file, path in paths.items()}, indent=2))
        return
    for file, path in paths.items():
        say(f"{file}  {path}")


def _at_hand(record: DatasetInfo) -> str:
    if not record.at_hand:
        return "no"
    return "yes" if record.complete else "partly"


def _as_json(record: DatasetInfo) -> dict[str, Any]:
    fields = asdict(record)
    for file in fields["files"]:
        file["path"] = None if file["path"] is None else str(file["path"])
    return fields
