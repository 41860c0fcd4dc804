"""The verbs of the laboratory: ``evaluate``, ``reproduce``, ``datasets`` and ``bank``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unsample.cli.app import Verb, group_of

_VERBS = {
    "evaluate": "Evaluate a recommender on a data set, exactly or at a fraction of the cost.",
    "reproduce": "Reproduce every table and figure of the paper, and check its claims.",
}
_DATASETS = {
    "list": "List the data sets, what is at hand on this machine, and the ranks that ship.",
    "info": "Show a data set's size, licence, citation, files, and what is at hand.",
    "fetch": "Download a data set's files, verify them, and say where they are.",
}
_BANK = {
    "list": "List the data sets of the bank and how many rank sets each has.",
    "add": "Write the bank with the full ranks of a folder added to it, as histograms.",
}


def laboratory_verbs() -> dict[str, Any]:
    """Return the verbs of the laboratory, none of them loaded."""
    verbs: dict[str, Any] = {}
    for name, sentence in _VERBS.items():
        verbs[name] = Verb(name, f"unsample.lab.cli._{name}:{name}_command", sentence)
    verbs["datasets"] = group_of("datasets", _members("datasets", _DATASETS), _about_datasets)
    verbs["bank"] = group_of("bank", _members("bank", _BANK), _about_bank)
    return verbs


def _members(group: str, sentences: Mapping[str, str]) -> dict[str, Verb]:
    return {
        name: Verb(name, f"unsample.lab.cli._{group}:{name}_command", sentence)
        for name, sentence in sentences.items()
    }


def _about_datasets() -> None:
    """List public data sets, show and fetch them."""


def _about_bank() -> None:
    """List the bank of ranks, or add to it."""
