"""Distributions, sizes and designs at random, put to the functions that users call.

A trial draws a world of one kind: a distribution of global ranks, a catalogue, a number of users
and a sample. It asks for one metric and notes whether the bounds, or the interval of a mean, hold
the truth. Nothing in a world was chosen because they do well there.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import unsample
from unsample.counts import Negatives
from unsample.errors import UnsampleWarning
from unsample.metrics import Metric, parse
from unsample.questions.compare.result import Comparison
from unsample.questions.estimate.result import Estimates
from unsample.questions.evaluate.ask import estimates_of
from unsample.sampling import draw_sampled_ranks

#: No answer may take longer, in seconds of processor time.
MAX_SECONDS = 20.0


@dataclass(frozen=True)
class Trial:
    """What came of one question."""

    words: str
    low: float
    high: float
    truth: float
    seconds: float

    @property
    def held(self) -> bool:
        """Return whether the truth was held, but for rounding."""
        return self.low - 1e-9 <= self.truth <= self.high + 1e-9


@dataclass(frozen=True)
class World:
    """A distribution of global ranks in a catalogue, and how it is sampled."""

    mass: np.ndarray
    sampled: int
    users: int
    metric: Metric
    replacement: bool = True
    rng: np.random.Generator = field(default_factory=np.random.default_rng, repr=False)

    @property
    def items(self) -> int:
        """Return the size of the catalogue."""
        return len(self.mass)

    @property
    def design(self) -> dict[str, int]:
        """Return what is known of a sample with replacement."""
        return {"items": self.items, "sampled": self.sampled}

    @property
    def truth(self) -> float:
        """Return the metric of users like these."""
        return float(self.mass @ self.metric.weights(np.arange(1, self.items + 1), self.items))

    def ranks(self) -> np.ndarray:
        """Draw the global rank of every user's target."""
        return 1 + self.rng.choice(self.items, size=self.users, p=self.mass)

    def __str__(self) -> str:
        how = "with" if self.replacement else "without"
        return (
            f"{self.metric}, {self.sampled} of {self.items} items {how} replacement, {self.users} "
            f"users, truth {self.truth:.5g}"
        )


# -- distributions --------------------------------------------------------------------------------


def _zipf(rng: np.random.Generator, items: int) -> np.ndarray:
    ranks = np.arange(1.0, items + 1)
    mass = (ranks + rng.choice([0.0, rng.uniform(0, 10)])) ** -rng.uniform(0.3, 2.5)
    return mass / mass.sum()


def _rank(rng: np.random.Generator, items: int) -> int:
    """Return a rank, even along the logarithm."""
    return int(np.exp(rng.uniform(0.0, np.log(items + 0.999)))) - 1


def _moved(mass: np.ndarray, share: float, ranks: np.ndarray | list[int]) -> np.ndarray:
    """Move a share of the mass to some ranks, the same to each."""
    mass = (1 - share) * mass
    np.add.at(mass, ranks, share / len(ranks))
    return mass


def _atoms(rng: np.random.Generator, mass: np.ndarray) -> np.ndarray:
    ranks = [_rank(rng, len(mass)) for _ in range(rng.integers(1, 4))]
    return _moved(mass, rng.uniform(0.02, 0.6), ranks)


def _dent(rng: np.random.Generator, mass: np.ndarray) -> np.ndarray:
    depth = min(_rank(rng, len(mass)) + 1, len(mass) - 1)
    mass = mass.copy()
    mass[:depth] *= rng.choice([0.0, rng.uniform(0.0, 0.5)])
    return mass / mass.sum()


def _heap(rng: np.random.Generator, mass: np.ndarray) -> np.ndarray:
    first = int(rng.uniform(0.4, 1.0) * (len(mass) - 1))
    last = min(len(mass), first + 1 + int(rng.choice([0.0, 0.1 * len(mass)])))
    return _moved(mass, rng.uniform(0.1, 0.7), np.arange(first, last))


def _jump(rng: np.random.Generator, mass: np.ndarray) -> np.ndarray:
    mass = mass.copy()
    mass[_rank(rng, len(mass)) :] *= np.exp(rng.uniform(-2.5, 2.5))
    return mass / mass.sum()


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "zipf": lambda _, mass: mass,
    "spikes": lambda rng, mass: _moved(mass, rng.uniform(0.05, 0.6), [0]),
    "atoms": _atoms,
    "dents": _dent,
    "heaps": _heap,
    "jumps": _jump,
    # Nearly all targets at one rank; metrics that end beside it are asked for.
    "needles": lambda rng, mass: _moved(mass, rng.uniform(0.8, 1.0), [_rank(rng, len(mass))]),
}


def _world(kind: str, rng: np.random.Generator, *, max_users: float = 1e6) -> World:
    items = round(math.exp(rng.uniform(math.log(3), math.log(30_000))))
    sampled = round(math.exp(rng.uniform(0.0, math.log(min(items - 1, 1000)))))
    users = round(math.exp(rng.uniform(0.0, math.log(max_users))))
    name = rng.choice(["Recall", "NDCG", "AP", "MRR"])
    mass = DISTRIBUTIONS[kind](rng, _zipf(rng, items))
    k = round(math.exp(rng.uniform(0.0, math.log(items))))
    if kind == "needles":
        k = min(max(int(mass.argmax()) + int(rng.integers(-1, 3)), 1), items)
    return World(
        mass,
        sampled,
        users,
        parse(name if name == "MRR" else f"{name}@{k}"),
        bool(rng.random() < 0.5),
        rng,
    )


# -- questions ------------------------------------------------------------------------------------


def _asked(words: object, truth: float, ask: Callable[[], Estimates | Comparison]) -> Trial:
    """Ask, and take the interval: that of a mean, or without a prior the bounds."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        found = ask()
        (entry,) = found.entries if isinstance(found, Estimates) else found.differences
        low, high = entry.interval()
    return Trial(str(words), low, high, truth, time.process_time() - started)


def _bounds_of(ranks: np.ndarray, metric: Metric, **design: object) -> Callable[[], Estimates]:
    """Return the question about sampled ranks; without a prior, intervals are the bounds."""
    return lambda: unsample.estimate(ranks, metrics=metric, method="naive", prior=None, **design)


def fixed(kind: str, rng: np.random.Generator) -> Trial:
    """Ask `estimate` about a distribution of one kind, in one catalogue."""
    world = _world(kind, rng)
    ranks = draw_sampled_ranks(
        world.ranks(), rng=rng, replacement=world.replacement, **world.design
    )
    negatives = Negatives(replacement=world.replacement)
    ask = _bounds_of(ranks, world.metric, negatives=negatives, **world.design)
    return _asked(world, world.truth, ask)


def sizes(_: str, rng: np.random.Generator) -> Trial:
    """Ask about catalogues of two to five sizes, with ranks that go with the size."""
    users = _world("zipf", rng, max_users=1e5).users
    every = np.unique(
        np.exp(rng.uniform(np.log(40), np.log(20_000), rng.integers(2, 6))).astype(int)
    )
    sampled = int(rng.choice([10, 30, 99]))
    shares = rng.dirichlet(np.ones(len(every)))
    # The distribution is that of R/N, a power of a uniform number.
    power = rng.uniform(1.2, 4.0)
    items = rng.choice(every, size=users, p=shares)
    ranks = np.ceil(items * rng.random(users) ** power).astype(int).clip(1)
    metric = parse(f"{rng.choice(['Recall', 'NDCG'])}@{rng.choice([5, 10, 50])}")
    truth = 0.0
    for size, share in zip(every, shares, strict=True):
        ends = (np.arange(size + 1) / size) ** (1.0 / power)
        truth += share * float(np.diff(ends) @ metric.weights(np.arange(1, size + 1), int(size)))
    drawn = draw_sampled_ranks(ranks, items=items, sampled=sampled, rng=rng)
    words = f"{metric}, {sampled} of {every.tolist()} items, {users} users"
    return _asked(words, truth, _bounds_of(drawn, metric, items=items, sampled=sampled))


def clusters(_: str, rng: np.random.Generator) -> Trial:
    """Ask about users with several targets, alike or not."""
    world = _world("zipf", rng, max_users=3e4)
    each, alike = int(rng.choice([2, 5, 20])), rng.random() < 0.5
    users = np.repeat(np.arange(world.users), each)
    if alike:
        full = np.repeat(world.ranks(), each)
    else:
        full = 1 + rng.choice(world.items, size=len(users), p=world.mass)
    metric = parse(f"Recall@{max(world.metric.k or 10, 1)}")
    drawn = draw_sampled_ranks(full, rng=rng, **world.design)
    words = f"{world}, {each} targets each, {'alike' if alike else 'of their own'}"
    ask = _bounds_of(drawn, metric, users=users, protocol="graph", **world.design)
    return _asked(words, float(world.mass[: metric.k].sum()), ask)


def shared(_: str, rng: np.random.Generator) -> Trial:
    """Ask about targets that share their sampled items, some of them strong for all targets."""
    items, sampled = 1000, int(rng.choice([20, 50, 200]))
    targets, effects = int(rng.choice([50, 200, 800])), float(rng.choice([0.0, 0.3, 1.0, 3.0]))
    scores = effects * rng.normal(size=items - 1) + rng.normal(size=(targets, items - 1))
    own = rng.normal(rng.uniform(0.0, 3.0), 1.0, size=targets) * math.hypot(1.0, effects)
    beats = scores > own[:, None]
    pool = rng.choice(items - 1, size=sampled, replace=False)
    metric = parse(f"{rng.choice(['Recall', 'NDCG'])}@{rng.choice([10, 50, 100])}")
    truth = float(metric.weights(1 + beats.sum(axis=1), items).mean())
    ranks = 1 + beats[:, pool].sum(axis=1)
    words = f"{metric}, {targets} targets, {sampled} shared items, effects {effects:g}"
    design = {
        "items": items,
        "sampled": sampled,
        "negatives": Negatives(replacement=False, shared=True),
    }
    return _asked(words, truth, _bounds_of(ranks, metric, **design))


def exact(_: str, rng: np.random.Generator) -> Trial:
    """Ask about full ranks: few users and rare hits."""
    world = _world(str(rng.choice(list(DISTRIBUTIONS))), rng, max_users=1e5)
    ranks = world.ranks()
    ask = lambda: unsample.exact(ranks, items=world.items, metrics=world.metric)  # noqa: E731
    return _asked(world, world.truth, ask)


def printed(_: str, rng: np.random.Generator) -> Trial:
    """Ask about the numbers that a paper would print of such a sample."""
    world = _world(str(rng.choice(list(DISTRIBUTIONS))), rng, max_users=1e5)
    sampled = min(int(rng.choice([9, 49, 99])), world.items - 1)
    world = World(world.mass, sampled, max(world.users, 5), world.metric, rng=rng)
    drawn = draw_sampled_ranks(world.ranks(), rng=rng, **world.design)
    digits = int(rng.integers(2, 5))
    numbers = {
        name: f"{np.mean(parse(name).weights(drawn, sampled + 1)):.{digits}f}"
        for name in rng.permutation(["HR@1", "HR@2", "NDCG@2"])[: rng.integers(1, 4)]
    }
    how = {"metrics": world.metric, "users": world.users, "prior": None, **world.design}
    # Honest numbers never contradict each other.
    ask = lambda: unsample.published(numbers, **how)  # noqa: E731
    return _asked(f"{numbers}, {world}", world.truth, ask)


def duels(_: str, rng: np.random.Generator) -> Trial:
    """Ask `compare` about two models on the same users; the difference is what is to be held."""
    first = _world(str(rng.choice(list(DISTRIBUTIONS))), rng, max_users=3e4)
    distribution = DISTRIBUTIONS[str(rng.choice(list(DISTRIBUTIONS)))]
    other = World(
        distribution(rng, _zipf(rng, first.items)),
        first.sampled,
        first.users,
        first.metric,
        rng=rng,
    )
    quantile = rng.random(first.users)
    drawn = {
        name: draw_sampled_ranks(
            1 + np.searchsorted(np.cumsum(each.mass)[:-1], quantile), rng=rng, **first.design
        )
        for name, each in zip("ab", (first, other), strict=True)
    }
    how = {"metrics": first.metric, "prior": None, **first.design}
    words, truth = f"{first} against {other.truth:.5g}", first.truth - other.truth
    return _asked(words, truth, lambda: unsample.compare(drawn, **how))


def certified(_: str, rng: np.random.Generator) -> Trial:
    """Ask about a certified design: as for full ranks, beyond K only a range is known."""
    world = _world(str(rng.choice(list(DISTRIBUTIONS))), rng, max_users=3e4)
    metric = world.metric if world.metric.k else parse("NDCG@10")
    world = World(world.mass, 1, world.users, metric, rng=rng)
    return _simulated(world, unsample.designs.Certified(), None)


def guided(_: str, rng: np.random.Generator) -> Trial:
    """Ask about a guided design within a budget, with guides that are good, useless or perverse."""
    world = _world(str(rng.choice(list(DISTRIBUTIONS))), rng, max_users=1e4)
    metric = parse(f"{rng.choice(['Recall', 'NDCG', 'AP'])}@{rng.choice([1, 5, 10])}")
    world = World(world.mass, 1, max(world.users, 30), metric, rng=rng)
    maximum = world.users * world.items
    minimum = world.users * (1 + min(metric.k or 1, world.items - 1)) + 12 * world.items
    budget = int(min(max(minimum, maximum * rng.uniform(0.02, 0.6)), maximum))
    return _simulated(world, unsample.designs.Guided(), budget)


def _simulated(world: World, design: unsample.designs.Design, budget: int | None) -> Trial:
    odds = float(np.exp(world.rng.uniform(-2.0, 4.0)))
    how = {"items": world.items, "metrics": world.metric, "odds": odds, "budget": budget}
    found = design.simulate(world.ranks(), rng=world.rng, **how)
    words = f"{world}, budget {budget}, odds {odds:.2g}"
    return _asked(words, world.truth, lambda: estimates_of(found, (world.metric,)))


#: Kind of world -> what draws one and asks about it.
KINDS: dict[str, Callable[[str, np.random.Generator], Trial]] = {
    **dict.fromkeys(DISTRIBUTIONS, fixed),
    "sizes": sizes,
    "clusters": clusters,
    "shared": shared,
    "exact": exact,
    "printed": printed,
    "duels": duels,
    "certified": certified,
    "guided": guided,
}


def trials(kind: str, size: int, seed: int = 0) -> list[Trial]:
    """Return so many trials of one kind; the same for the same seed."""
    return [
        KINDS[kind](kind, np.random.default_rng([seed, number, *kind.encode()]))
        for number in range(size)
    ]
