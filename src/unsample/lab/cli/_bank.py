"""``unsample bank``: the rank sets that the prior is learned from."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from unsample.cli.console import console_verb, say
from unsample.cli.options import AsJson, checked_place


@console_verb
def list_command(as_json: AsJson = False) -> None:
    """List the data sets of the bank and how many rank sets each has."""
    from unsample.lab.bank import load_bank

    found = Counter((each.dataset, each.group, each.family) for each in load_bank())
    if as_json:
        names = ("dataset", "group", "family", "sets")
        rows = [dict(zip(names, (*key, number), strict=True)) for key, number in found.items()]
        say(json.dumps(rows, indent=2))
        return
    for (dataset, group, family), number in found.items():
        say(f"{dataset:18} {group:10} {family:18} {number:3} rank sets")


@console_verb
def add_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="NAME.npz with full ranks.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", callback=checked_place, help="The new bank, .npz.")
    ],
    as_json: AsJson = False,
) -> None:
    """Write the bank with the full ranks of a folder added to it, as histograms."""
    from unsample.lab.bank import load_bank, read_folder

    added = read_folder(folder)
    bank = load_bank().add(added)
    bank.save(out)
    if as_json:
        say(json.dumps({"added": len(added), "sets": len(bank), "file": str(out)}))
        return
    say(f"{len(added)} rank sets added, {len(bank)} in {out}")
