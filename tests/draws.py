"""Negatives drawn in known ways, good and bad, for promises about `audit`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse

import unsample

#: Answers that are right for lists drawn uniformly, for each target its own, nothing amiss.
RIGHT = {
    "sizes": {"equal"},
    "uniform": {"yes", "nearly"},
    "popularity": {"no", "hardly"},
    "item numbers": {"no preference"},
    "seen items": {"left out", "cannot tell"},
    "targets": {"left out", "cannot tell"},
    "shared lists": {"own"},
    "neighbours": {"independent"},
    # Only counted where the law is in doubt.
    "never drawn": {"as expected", "some", "none"},
}


@dataclass(frozen=True)
class Sampler:
    """How lists are drawn: how many, how long, and from what."""

    lists: int = 300
    sampled: int = 30
    items: int = 600
    replacement: bool = True
    #: Whether users have seen items, which are left out.
    seen: bool = False
    exponent: float = 0.0

    def draw(self, rng: np.random.Generator) -> dict:
        """Return the arguments of an audit."""
        popularity = np.floor(10 * rng.pareto(1.2, self.items) + 1)
        targets = rng.integers(self.items, size=self.lists)
        share = np.minimum(popularity / popularity.mean() * 0.08, 0.6) * self.seen
        matrix = rng.random((self.lists, self.items)) < share
        matrix[np.arange(self.lists), targets] = False
        chance = np.tile(popularity**self.exponent, (self.lists, 1))
        chance[matrix] = 0.0
        chance[np.arange(self.lists), targets] = 0.0
        chance /= chance.sum(axis=1, keepdims=True)
        lists = [
            rng.choice(self.items, self.sampled, replace=self.replacement, p=row) for row in chance
        ]
        found = {
            "negatives": np.array(lists),
            "items": self.items,
            "targets": targets,
            "popularity": popularity,
        }
        return found | ({"exclude": scipy.sparse.csr_array(matrix * 1.0)} if self.seen else {})

    def wrong(self, result: unsample.Audit) -> list[str]:
        """Return the questions whose answers are wrong for uniform lists."""
        wrong = [
            finding.question
            for finding in result.findings
            if finding.answer not in RIGHT.get(finding.question, {finding.answer})
        ]
        right = "with" if self.replacement else "without"
        found = result["replacement"].answer
        return wrong if found in (right, "cannot tell") else [*wrong, "replacement"]


def audits(sampler: Sampler, trials: int, seed: int) -> Iterable[unsample.Audit]:
    """Yield audits of lists that are drawn anew each time."""
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        yield unsample.audit(**sampler.draw(rng))


# -- what goes wrong ------------------------------------------------------------------------------


def lower_half(rng: np.random.Generator) -> dict:
    """Draw twice as many items, sort them, keep the first half: as one library did."""
    rows = [np.unique(rng.integers(600, size=60))[:30] for _ in range(300)]
    return {"negatives": rows, "items": 600}


def one_pool(rng: np.random.Generator) -> dict:
    return {"negatives": np.tile(rng.choice(600, 30, replace=False), (300, 1)), "items": 600}


def batches(rng: np.random.Generator) -> dict:
    pools = [rng.choice(600, 30, replace=False) for _ in range(10)]
    return {"negatives": np.repeat(pools, 30, axis=0), "items": 600}


def batches_less_some(rng: np.random.Generator) -> dict:
    """Share pools in batches, from which each list takes a part of its own."""
    pools = [rng.choice(600, 40, replace=False) for _ in range(10)]
    rows = [rng.choice(pool, 30, replace=False) for pool in pools for _ in range(30)]
    return {"negatives": np.array(rows), "items": 600}


def reused(rng: np.random.Generator) -> dict:
    lists = np.array([rng.choice(600, 30, replace=False) for _ in range(100)])
    return {"negatives": np.tile(lists, (3, 1)), "items": 600}


def by_user(rng: np.random.Generator) -> dict:
    lists = np.array([rng.choice(600, 30, replace=False) for _ in range(100)])
    users = rng.integers(100, size=300)
    return {"negatives": lists[users], "items": 600, "users": users}


def dealt(rng: np.random.Generator) -> dict:
    """Deal shuffled items out in turn."""
    rows = [rng.permutation(600).reshape(20, 30) for _ in range(15)]
    return {"negatives": np.concatenate(rows), "items": 600}


def catalogue_too_large(rng: np.random.Generator) -> dict:
    return {"negatives": rng.integers(580, size=(300, 30)), "items": 600}


def with_targets(rng: np.random.Generator) -> dict:
    rows = rng.integers(600, size=(300, 30))
    return {"negatives": rows, "items": 600, "targets": rows[:, 3]}


def half_of_seen(rng: np.random.Generator) -> dict:
    """Leave out half of what users have seen."""
    rows = rng.integers(600, size=(300, 30))
    seen = rng.random((300, 600)) < 0.1
    left_out = seen & (rng.random(seen.shape) < 0.5)
    for user, row in enumerate(rows):
        while left_out[user, row].any():
            bad = left_out[user, row]
            row[bad] = rng.integers(600, size=bad.sum())
    return {"negatives": rows, "items": 600, "exclude": scipy.sparse.csr_array(seen * 1.0)}


def filled_up(rng: np.random.Generator) -> dict:
    """Fill the end of each list with its beginning."""
    rows = rng.integers(600, size=(300, 30))
    rows[:, 28:] = rows[:, :2]
    return {"negatives": rows, "items": 600}


#: A defect -> how it is made, and the question and answer that tell it.
DEFECTS: dict[str, tuple[Callable[[np.random.Generator], dict], str, str]] = {
    "lower half": (lower_half, "item numbers", "low"),
    "popularity to 0.3": (Sampler(exponent=0.3).draw, "popularity", "yes"),
    "one pool": (one_pool, "shared lists", "one pool"),
    "batches": (batches, "shared lists", "batches"),
    "batches less some": (batches_less_some, "neighbours", "overlap"),
    "a file used again": (reused, "shared lists", "reused"),
    "a list for each user": (by_user, "shared lists", "by user"),
    "dealt in turn": (dealt, "uniform", "too even"),
    "a catalogue that is too large": (catalogue_too_large, "never drawn", "too many"),
    "targets among their negatives": (with_targets, "targets", "among them"),
    "half of the seen items": (half_of_seen, "seen items", "partly left out"),
    "lists filled up": (filled_up, "replacement", "with, too many repeats"),
}
