"""Laws, sizes and designs at random, put through the doors that users have.

A trial draws a world of one kind: a law of global ranks, a catalogue, a number of users and a
sample. It asks a door for one metric and notes whether the interval and the bounds hold the truth,
whether the law keeps what the interval assumes, and whether the result warns. Nothing in a world
was chosen because an interval does well there.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from unsample.confidence import SHAPES, Shape

import unsample
from tests import pools as shared
from unsample.answers import Estimates, certified_targets
from unsample.errors import ContradictionError, RefutedWarning, UnsampleWarning
from unsample.law import draw_sampled_ranks
from unsample.metrics import Metric, parse

#: No answer may take longer, in seconds of processor time.
MOST_SECONDS = 20.0
#: What intervals assume, by what is stated of the candidates; also where an error is planted.
ASSUMED = {"unseen": SHAPES["power"], None: SHAPES["depleted"]}


@dataclass(frozen=True)
class Trial:
    """What came of one question."""

    kind: str
    words: str
    interval: tuple[float, float]
    bounds: tuple[float, float]
    truth: float
    #: Whether the law keeps the shape that the interval assumes.
    keeps: bool
    #: Whether the result says that the shape is refuted, or hardly agrees with the data.
    warned: bool
    seconds: float

    @property
    def covered(self) -> bool:
        """Return whether the interval holds the truth, but for rounding."""
        return self.interval[0] - 1e-9 <= self.truth <= self.interval[1] + 1e-9

    @property
    def bounded(self) -> bool:
        """Return whether the bounds hold the truth, but for rounding."""
        return self.bounds[0] - 1e-9 <= self.truth <= self.bounds[1] + 1e-9


@dataclass(frozen=True)
class World:
    """A law of global ranks in a catalogue, and how it is looked at."""

    mass: np.ndarray
    sampled: int
    users: int
    metric: Metric
    replacement: bool = True
    candidates: str | None = "unseen"
    rng: np.random.Generator = field(default_factory=np.random.default_rng, repr=False)

    @property
    def items(self) -> int:
        """Return the size of the catalogue."""
        return len(self.mass)

    @property
    def truth(self) -> float:
        """Return the metric of users like these."""
        return float(self.mass @ self.metric.weights(np.arange(1, self.items + 1), self.items))

    def ranks(self) -> np.ndarray:
        """Draw the global rank of every user's target."""
        return 1 + self.rng.choice(self.items, size=self.users, p=self.mass)

    def keeps(self, shape: Shape) -> bool:
        """Return whether the law has a shape, from rank to rank."""
        ranks = np.arange(1.0, self.items)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.diff(np.log(self.mass)) / np.diff(np.log(np.arange(1.0, self.items + 1)))
        low, high = shape.exponents(np.sqrt(ranks * (ranks + 1)), (self.items - 1) / self.sampled)
        limited = np.isfinite(low) | np.isfinite(high)
        inside = (slope >= low - 1e-9) & (slope <= high + 1e-9)
        return bool(inside[limited].all())

    def __str__(self) -> str:
        how = "with" if self.replacement else "without"
        return (
            f"{self.metric}, {self.sampled} of {self.items} items {how} replacement, {self.users} "
            f"users, truth {self.truth:.5g}"
        )


# -- laws -----------------------------------------------------------------------------------------


def _zipf(rng: np.random.Generator, items: int) -> np.ndarray:
    ranks = np.arange(1.0, items + 1)
    mass = (ranks + rng.choice([0.0, rng.uniform(0, 10)])) ** -rng.uniform(0.3, 2.5)
    return mass / mass.sum()


def _place(rng: np.random.Generator, items: int) -> int:
    """Return a rank, even along the logarithm."""
    return int(np.exp(rng.uniform(0.0, np.log(items + 0.999)))) - 1


def _atoms(rng: np.random.Generator, mass: np.ndarray) -> np.ndarray:
    share = rng.uniform(0.02, 0.6)
    mass = (1 - share) * mass
    for part in rng.dirichlet(np.ones(rng.integers(1, 4))):
        mass[_place(rng, len(mass))] += share * part
    return mass


def _spike(rng: np.random.Generator, mass: np.ndarray) -> np.ndarray:
    share = rng.uniform(0.05, 0.6)
    mass = (1 - share) * mass
    mass[0] += share
    return mass


def _dent(rng: np.random.Generator, mass: np.ndarray) -> np.ndarray:
    depth = min(_place(rng, len(mass)) + 1, len(mass) - 1)
    mass = mass.copy()
    mass[:depth] *= rng.choice([0.0, rng.uniform(0.0, 0.5)])
    return mass / mass.sum()


def _heap(rng: np.random.Generator, mass: np.ndarray) -> np.ndarray:
    share, items = rng.uniform(0.1, 0.7), len(mass)
    first = int(rng.uniform(0.4, 1.0) * (items - 1))
    last = min(items, first + 1 + int(rng.choice([0.0, 0.1 * items])))
    mass = (1 - share) * mass
    mass[first:last] += share / (last - first)
    return mass


def _jump(rng: np.random.Generator, mass: np.ndarray) -> np.ndarray:
    mass = mass.copy()
    mass[_place(rng, len(mass)) :] *= np.exp(rng.uniform(-2.5, 2.5))
    return mass / mass.sum()


def _needle(rng: np.random.Generator, mass: np.ndarray) -> np.ndarray:
    """Nearly all targets at one rank; metrics that end beside it are asked for."""
    share = rng.uniform(0.8, 1.0)
    mass = (1 - share) * mass
    mass[_place(rng, len(mass))] += share
    return mass


LAWS: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "zipf": lambda _, mass: mass,
    "spikes": _spike,
    "atoms": _atoms,
    "dents": _dent,
    "heaps": _heap,
    "jumps": _jump,
    "needles": _needle,
}


def _world(kind: str, rng: np.random.Generator, *, most_users: float = 1e6) -> World:
    items = round(math.exp(rng.uniform(math.log(3), math.log(30_000))))
    sampled = round(math.exp(rng.uniform(0.0, math.log(min(items - 1, 1000)))))
    users = round(math.exp(rng.uniform(0.0, math.log(most_users))))
    name = rng.choice(["Recall", "NDCG", "AP", "MRR"])
    mass = LAWS[kind](rng, _zipf(rng, items))
    k = round(math.exp(rng.uniform(0.0, math.log(items))))
    if kind == "needles":
        k = min(max(int(mass.argmax()) + int(rng.integers(-1, 3)), 1), items)
    return World(
        mass,
        sampled,
        users,
        parse(name if name == "MRR" else f"{name}@{k}"),
        bool(rng.random() < 0.5),
        None if kind == "dents" else "unseen",
        rng,
    )


# -- doors ----------------------------------------------------------------------------------------


def _asked(kind: str, words: str, truth: float, keeps: bool, ask: Callable[[], Estimates]) -> Trial:
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        result = ask()
        (entry,) = result.entries
        interval, bounds = entry.interval(kind="guaranteed"), entry.bounds()
    warned = any(isinstance(note, RefutedWarning) for note in result.notes)
    spent = time.process_time() - started
    return Trial(kind, words, interval, bounds, truth, keeps, warned, spent)


def fixed(kind: str, rng: np.random.Generator) -> Trial:
    """Ask `estimate` about a law of one kind, in one catalogue."""
    world = _world(kind, rng)
    ranks = draw_sampled_ranks(
        world.ranks(),
        items=world.items,
        sampled=world.sampled,
        replacement=world.replacement,
        rng=rng,
    )
    return _asked(
        kind,
        str(world),
        world.truth,
        world.keeps(ASSUMED[world.candidates]),
        lambda: unsample.estimate(
            ranks,
            items=world.items,
            sampled=world.sampled,
            replacement=world.replacement,
            candidates=world.candidates,
            metrics=world.metric,
            method="naive",
        ),
    )


def sizes(kind: str, rng: np.random.Generator) -> Trial:
    """Ask about catalogues of two to five sizes, with ranks that go with the size."""
    world = _world("zipf", rng, most_users=1e5)
    every = np.unique(
        np.exp(rng.uniform(np.log(40), np.log(20_000), rng.integers(2, 6))).astype(int)
    )
    sampled = int(rng.choice([10, 30, 99]))
    shares = rng.dirichlet(np.ones(len(every)))
    # The law is that of R/N, a power of a uniform number, so that no range has another shape.
    power = rng.uniform(1.2, 4.0)
    items = rng.choice(every, size=world.users, p=shares)
    ranks = np.ceil(items * rng.random(world.users) ** power).astype(int).clip(1)
    k = int(rng.choice([5, 10, 50]))
    metric = parse(f"{rng.choice(['Recall', 'NDCG'])}@{k}")
    truth = 0.0
    for size, share in zip(every, shares, strict=True):
        ends = (np.arange(size + 1) / size) ** (1.0 / power)
        truth += share * float(np.diff(ends) @ metric.weights(np.arange(1, size + 1), int(size)))
    drawn = draw_sampled_ranks(ranks, items=items, sampled=sampled, rng=rng)
    return _asked(
        kind,
        f"{metric}, {sampled} of {every.tolist()} items, {world.users} users",
        truth,
        True,
        lambda: unsample.estimate(
            drawn,
            items=items,
            sampled=sampled,
            candidates="unseen",
            metrics=metric,
            method="naive",
        ),
    )


def clusters(kind: str, rng: np.random.Generator) -> Trial:
    """Ask about users with several targets, alike or not."""
    world = _world("zipf", rng, most_users=3e4)
    each = int(rng.choice([2, 5, 20]))
    alike = rng.random() < 0.5
    ranks = world.ranks()
    if alike:
        full, users = np.repeat(ranks, each), np.repeat(np.arange(world.users), each)
    else:
        users = np.repeat(np.arange(world.users), each)
        full = 1 + rng.choice(world.items, size=len(users), p=world.mass)
    metric = parse(f"Recall@{max(world.metric.k or 10, 1)}")
    drawn = draw_sampled_ranks(full, items=world.items, sampled=world.sampled, rng=rng)
    truth = float(world.mass[: metric.k].sum())
    return _asked(
        kind,
        f"{world}, {each} targets each, {'alike' if alike else 'of their own'}",
        truth,
        world.keeps(ASSUMED["unseen"]),
        lambda: unsample.estimate(
            drawn,
            items=world.items,
            sampled=world.sampled,
            users=users,
            kind="graph",
            candidates="unseen",
            metrics=metric,
            method="naive",
        ),
    )


def exact(kind: str, rng: np.random.Generator) -> Trial:
    """Ask about full ranks: few users and rare hits."""
    world = _world(str(rng.choice(list(LAWS))), rng, most_users=1e5)
    ranks = world.ranks()
    return _asked(
        kind,
        str(world),
        world.truth,
        True,
        lambda: unsample.exact(ranks, items=world.items, metrics=world.metric),
    )


def printed(kind: str, rng: np.random.Generator) -> Trial:
    """Ask about the numbers that a paper would print of such a sample."""
    world = _world(str(rng.choice(list(LAWS))), rng, most_users=1e5)
    sampled = min(int(rng.choice([9, 49, 99])), world.items - 1)
    world = World(world.mass, sampled, max(world.users, 5), world.metric, rng=rng)
    drawn = draw_sampled_ranks(world.ranks(), items=world.items, sampled=sampled, rng=rng)
    digits = int(rng.integers(2, 5))
    numbers = {
        name: f"{np.mean(parse(name).weights(drawn, sampled + 1)):.{digits}f}"
        for name in rng.permutation(["HR@1", "HR@2", "NDCG@2"])[: rng.integers(1, 4)]
    }

    def ask() -> Estimates:
        try:
            return unsample.published(
                numbers,
                items=world.items,
                sampled=sampled,
                users=world.users,
                candidates="unseen",
                metrics=world.metric,
            )
        except ContradictionError as problem:  # honest numbers never contradict each other
            raise AssertionError(f"{numbers}, {world}: {problem}") from problem

    keeps = world.keeps(ASSUMED["unseen"])
    return _asked(kind, f"{numbers}, {world}", world.truth, keeps, ask)


def duels(kind: str, rng: np.random.Generator) -> Trial:
    """Ask `compare` about two models on the same users; the difference is what is to be held."""
    first = _world(str(rng.choice(list(LAWS))), rng, most_users=3e4)
    law = LAWS[str(rng.choice(list(LAWS)))]
    other = World(
        law(rng, _zipf(rng, first.items)), first.sampled, first.users, first.metric, rng=rng
    )
    place = rng.random(first.users)
    drawn = [
        draw_sampled_ranks(
            1 + np.searchsorted(np.cumsum(each.mass)[:-1], place),
            items=first.items,
            sampled=first.sampled,
            rng=rng,
        )
        for each in (first, other)
    ]
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        result = unsample.compare(
            dict(zip("ab", drawn, strict=True)),
            items=first.items,
            sampled=first.sampled,
            candidates="unseen",
            metrics=first.metric,
            method="mle(iterations=5)",
        )
    (pair,) = result.differences
    warned = any(
        isinstance(note, RefutedWarning)
        for each in result.estimates.values()
        for note in each.notes
    )
    return Trial(
        kind,
        f"{first} against {other.truth:.5g}",
        (pair.low, pair.high),
        (-1.0, 1.0),
        first.truth - other.truth,
        all(each.keeps(ASSUMED["unseen"]) for each in (first, other)),
        warned,
        time.process_time() - started,
    )


def pools(kind: str, rng: np.random.Generator) -> Trial:
    """Ask about targets that share their sampled items, some of them strong for all targets."""
    world = shared.World(
        effects=float(rng.choice([0.0, 0.3, 1.0, 3.0])),
        sampled=int(rng.choice([20, 50, 200])),
        targets=int(rng.choice([50, 200, 800])),
        items=1000,
        shift=float(rng.uniform(0.0, 10.0)),
        fall=float(rng.uniform(0.3, 1.4)),
    )
    metric = parse(f"{rng.choice(['Recall', 'NDCG'])}@{rng.choice([10, 50, 100])}")
    (batches,) = shared.draw(world, rng)
    told = shared.told(world, batches[world.sampled], known=bool(rng.random() < 0.7))
    law = World(world.law, world.sampled, 1, metric)
    return _asked(
        kind,
        f"{world}, {metric}",
        law.truth,
        law.keeps(ASSUMED["unseen"]),
        lambda: unsample.estimate(told, candidates="unseen", metrics=metric, method="naive"),
    )


def certified(kind: str, rng: np.random.Generator) -> Trial:
    """Ask about a certified design: as for full ranks, beyond K only a range is known."""
    return _simulated(kind, rng, unsample.designs.Certified(), None)


def guided(kind: str, rng: np.random.Generator) -> Trial:
    """Ask about a guided design within a budget, with guides that are good, useless or perverse."""
    world = _world(str(rng.choice(list(LAWS))), rng, most_users=1e4)
    metric = parse(f"{rng.choice(['Recall', 'NDCG', 'AP'])}@{rng.choice([1, 5, 10])}")
    world = World(world.mass, 1, max(world.users, 30), metric, rng=rng)
    most = world.users * world.items
    least = world.users * (1 + min(metric.k or 1, world.items - 1)) + 12 * world.items
    budget = int(min(max(least, most * rng.uniform(0.02, 0.6)), most))
    return _simulated(kind, rng, unsample.designs.Guided(), budget, world)


def _simulated(
    kind: str,
    rng: np.random.Generator,
    design: unsample.designs.Design,
    budget: int | None,
    world: World | None = None,
) -> Trial:
    if world is None:
        world = _world(str(rng.choice(list(LAWS))), rng, most_users=3e4)
        metric = world.metric if world.metric.k else parse("NDCG@10")
        world = World(world.mass, 1, world.users, metric, rng=rng)
    odds = float(np.exp(rng.uniform(-2.0, 4.0)))
    found = design.simulate(
        world.ranks(),
        items=world.items,
        rng=rng,
        budget=budget,
        metrics=world.metric,
        odds=odds,
    )
    return _asked(
        kind,
        f"{world}, budget {budget}, odds {odds:.2g}",
        world.truth,
        True,
        lambda: certified_targets(found, (world.metric,), None),
    )


#: Kind of world -> what draws one and asks about it.
KINDS: dict[str, Callable[[str, np.random.Generator], Trial]] = {
    **dict.fromkeys(LAWS, fixed),
    "sizes": sizes,
    "clusters": clusters,
    "exact": exact,
    "printed": printed,
    "duels": duels,
    "pools": pools,
    "certified": certified,
    "guided": guided,
}


def trials(kind: str, size: int, seed: int = 0) -> list[Trial]:
    """Return so many trials of one kind; the same for the same seed."""
    return [
        KINDS[kind](kind, np.random.default_rng([seed, number, *kind.encode()]))
        for number in range(size)
    ]
