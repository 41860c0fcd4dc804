"""`Negatives`: how the sampled items were drawn, and why other ways are refused."""

from __future__ import annotations

from dataclasses import dataclass

from unsample._checks import check_choice, check_flag
from unsample.errors import InputError

#: What the command calls negatives of each target, and those that all targets share.
WORDS = ("own", "shared")
_EXPECTED = "negatives must be unsample.Negatives(replacement=..., shared=...)"
#: Words that people write instead, and what to do.
_ADVICE = {
    "own": "the default says that items were drawn for each target: leave it out",
    "shared": "for one pool of items that all targets share write unsample.Negatives(shared=True)",
    "uniform": "all methods assume that items are drawn uniformly at random: leave it out",
    "popularity": "where popular items are drawn more often, a rank tells which share of the "
    "popularity lies above the target, and no function of such ranks tells how many items do; draw "
    "uniformly at random and rank again, or evaluate the model with unsample.evaluate",
}
_CHOSEN = (
    "items must be drawn at random: those that a model chose (hard negatives, the best of BM25, "
    "NanoBEIR) tell nothing of the items that it left; draw a random part for all queries "
    "(shared) or for each, or rank in full with unsample.evaluate"
)


@dataclass(frozen=True)
class Negatives:
    """How items were sampled: uniformly at random, and as follows.

    Ranks do not show whether items were drawn uniformly: from samples by popularity every estimate
    is wrong, without a warning.

    Parameters
    ----------
    replacement
        Whether the same item may be sampled twice for a target. Where samples differ in size, those
        of all other items (``sampled = items - 1``) are full rankings in any case.
    shared
        Whether all targets were ranked against one pool of sampled items: their ranks then depend
        on each other. If it is known which item beats which target, give a table of scored rows
        (user, item, score, target).

    >>> Negatives(shared=True)
    Negatives(replacement=True, shared=True)
    """

    replacement: bool = True
    shared: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "replacement", check_flag("replacement", self.replacement))
        object.__setattr__(self, "shared", check_flag("shared", self.shared))


#: How items are drawn where nothing is said.
USUAL = Negatives()


def as_negatives(negatives: object) -> Negatives:
    """Return how items were drawn, by default for each target with replacement.

    >>> as_negatives(None)
    Negatives(replacement=True, shared=False)
    """
    if negatives is None:
        return USUAL
    if isinstance(negatives, Negatives):
        return negatives
    advice = _advice(str(negatives))
    raise InputError(f"{_EXPECTED}, got {negatives!r}; {advice}")


def are_shared(word: str) -> bool:
    """Return whether targets share their items, by the command's word for it; refuse others.

    >>> are_shared("own"), are_shared("shared")
    (False, True)
    """
    check_choice("negatives", word, WORDS, hint=_advice(word))
    return word == "shared"


def _advice(word: str) -> str:
    """Return what to do where items were drawn in a way that has this name."""
    plain = word.casefold()
    # Other libraries say pop, pop100 or popular.
    return _ADVICE.get("popularity" if plain.startswith("pop") else plain, _CHOSEN)


def refuse_shared(negatives: Negatives) -> None:
    """Refuse one pool of items where it is not known how targets depend on each other."""
    if negatives.shared:
        raise InputError(
            "negatives must be drawn for each target, got shared=True: the numbers do not tell "
            "how far one pool of items moves all targets together; give unsample.estimate the "
            "ranks, or the scores"
        )
