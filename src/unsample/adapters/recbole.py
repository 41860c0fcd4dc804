"""Models, loaders and results of RecBole.

An evaluation with ``mode: uni100`` draws 100 items for each target, with replacement, from the
items that the user has not interacted with, and puts the items of all targets of a user into one
list. `targets` ranks the targets in it. Metrics of such lists depend on how many targets a user
has, so `published`, which reads those metrics, needs one for each. `task` leaves sampling aside
and asks the model itself.

RecBole counts users and items from 1; 0 is padding, and no candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import answers
from unsample._checks import IntArray, Seed
from unsample.adapters._lists import Counting
from unsample.adapters._tasks import ModelScores, Pairs, Task, check_object, require
from unsample.answers import DEFAULT_METHOD, DEFAULT_METRICS, Published
from unsample.errors import DesignError, InputError
from unsample.evidence import Targets, compare_lists
from unsample.metrics import Metric

__all__ = ["published", "targets", "task"]

_MODEL = "a model of recbole", ("predict", "device")
#: Metrics of RecBole that are metrics of the one target's rank, and what each is the same as.
_OF_RANK = {name: name for name in ("hit", "mrr", "ndcg", "precision")}
_OF_RANK |= {"recall": "hit", "map": "mrr"}


def targets(
    model: Any, loader: Any, *, ties: str = "random", rng: Seed = 0, filtered: bool = False
) -> Targets:
    """Rank each target among the items that a ``uni100`` loader draws for its user.

    Parameters
    ----------
    model
        A trained model.
    loader
        The loader of test (or validation) data under ``mode: uniN``, as ``data_preparation``
        makes it. Its items are drawn anew on every pass, by the seed that RecBole was given.
    ties, rng, filtered
        As in `unsample.adapters.trec.targets`.
    """
    counting = Counting(ties, rng, filtered)
    check_object("model", model, *_MODEL)
    _uniform_sample(loader)
    parts = [_compare_batch(model, batch, loader) for batch in loader]
    users, better, tied, sampled, scores = map(np.concatenate, zip(*parts, strict=True))
    return counting.targets(
        better,
        tied,
        # What could have been drawn, and all targets.
        items=_catalogue(loader)[users] + np.bincount(users)[users] - 1,
        sampled=sampled,
        users=users,
        replacement=True,
        scores=scores,
    )


def published(
    results: Mapping[str, float],
    loader: Any,
    *,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str = DEFAULT_METHOD,
) -> Published:
    """Estimate from the metrics that ``trainer.evaluate`` returned under ``mode: uniN``.

    Parameters
    ----------
    results
        Names and values such as ``{"hit@10": 0.62, "ndcg@10": 0.35}``, rounded as configured.
        Metrics that do not follow from the target's rank (coverage, popularity) are left out.
    loader
        The loader that was evaluated; it tells how many users and items there are.
    metrics, method
        As in `unsample.published`.
    """
    drawn = _uniform_sample(loader)
    per_user = loader.uid2items_num[loader.uid_list]
    if per_user.max() > 1:
        raise DesignError(
            "results must be of one target for each user, got up to "
            f"{int(per_user.max())}; RecBole ranks the targets of a user among the items drawn "
            "for all of them: use unsample.adapters.recbole.targets(model, loader)"
        )
    numbers: dict[str, float] = {}
    for name, value in results.items():
        family, _, k = name.casefold().partition("@")
        if family in _OF_RANK:
            # What is printed under two names is one number.
            numbers.setdefault(f"{_OF_RANK[family]}@{k}", float(value))
    if not numbers:
        raise InputError(
            f"results must hold one of {', '.join(_OF_RANK)} at some k, got "
            f"{', '.join(results) or 'none'}"
        )
    items = float(_catalogue(loader)[loader.uid_list].mean())
    # RecBole ranks among the different items that were drawn, of which there are this many.
    different = (items - 1) * -np.expm1(drawn * np.log1p(-1 / (items - 1)))
    return answers.published(
        numbers,
        items=round(items),
        sampled=round(different),
        users=len(loader.uid_list),
        metrics=metrics,
        method=method,
        replacement=False,
        candidates="all" if _is_repeatable(loader) else "unseen",
        decimals=loader.config["metric_decimal_place"],
    )


def task(model: Any, loader: Any) -> Task:
    """Make a task of a trained model and the loader of its test data under ``mode: full``.

    A user of a sequential model is a test interaction with the history before it; as in RecBole,
    the history stays among the candidates. With other models, what a user has interacted with in
    training and validation is left out of the candidates.
    """
    check_object("model", model, *_MODEL)
    if not hasattr(loader, "is_sequential") or hasattr(loader, "neg_sample_args"):
        raise InputError(
            f"loader must be made under mode: full, got {type(loader).__name__}; for sampled "
            "evaluation use unsample.adapters.recbole.targets(model, loader)"
        )
    data = loader.dataset
    item_ids = np.arange(1, int(data.item_num))
    if loader.is_sequential:
        rows = np.arange(len(data))
        asked = loader.transform(data, data[rows])
        held_out, seen = (rows, asked[data.iid_field].numpy() - 1), None
    else:
        asked = loader.user_df
        held_out, seen = (
            _pairs([items[user].numpy() for user in loader.uid_list.numpy()])
            for items in (loader.uid2positive_item, loader.uid2history_item)
        )

    def everything(rows: IntArray, /) -> npt.NDArray[Any]:
        """Return the scores of all items, by one pass where the model has one."""
        try:
            scores = _ask(model, "full_sort_predict", asked[rows])
        except NotImplementedError:
            return chosen(rows, np.tile(item_ids - 1, (len(rows), 1)))
        return scores.reshape(len(rows), -1)[:, 1:]

    def chosen(rows: IntArray, items: IntArray, /) -> npt.NDArray[Any]:
        interaction = asked[np.repeat(rows, items.shape[1])]
        interaction.update(data.get_item_feature()[items.reshape(-1) + 1])
        return _ask(model, "predict", interaction).reshape(items.shape)

    return Task.of_pairs(
        ModelScores(everything, len(item_ids), chosen),
        held_out,
        seen,
        (
            np.asarray(data.id2token(data.uid_field, asked[data.uid_field])),
            np.asarray(data.id2token(data.iid_field, item_ids)),
        ),
    )


def _pairs(lists: list[IntArray]) -> Pairs:
    """Return the row and the item of each entry; RecBole counts items from 1."""
    rows = np.repeat(np.arange(len(lists)), [len(items) for items in lists])
    return rows, np.concatenate(lists).astype(np.int64) - 1


def _ask(model: Any, method: str, interaction: Any) -> npt.NDArray[Any]:
    """Ask a model in evaluation mode, without gradients, and leave it in the mode it was in."""
    torch = require("recbole", "torch")
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            scores = getattr(model, method)(interaction.to(model.device))
    finally:
        model.train(training)
    return np.asarray(scores.float().cpu().numpy())


def _uniform_sample(loader: Any) -> int:
    """Return how many items a loader draws for a target, and refuse what is no uniform draw."""
    hint = "for mode: full use unsample.adapters.recbole.task(model, loader)"
    needed = ("neg_sample_args", "uid2items_num")
    check_object("loader", loader, "made under mode: uniN", needed, hint)
    arguments = loader.neg_sample_args
    if arguments["distribution"] != "uniform":
        raise DesignError(
            f"loader must draw items uniformly, got {arguments['distribution']!r}; ranks among "
            "popular items do not tell ranks among all: evaluate with mode: uniN"
        )
    return int(loader.neg_sample_num)


def _compare_batch(model: Any, batch: Any, loader: Any) -> tuple[npt.NDArray[Any], ...]:
    """Return for each target its user, and how many items of the user beat it, tie and are there.

    Last comes its score. As RecBole has it, all targets of a user are compared with all items drawn
    for any of them. A user's rows are the targets, and then the items.
    """
    interaction, owner, positive, _ = batch
    scores = _ask(model, "predict", interaction).reshape(-1)
    if np.isnan(scores).any():
        raise InputError("scores must not be NaN, got some; the model has diverged")
    owner = owner.numpy()
    count = np.bincount(positive.numpy())
    begin = np.searchsorted(owner, np.arange(len(count)))
    is_target = np.arange(len(owner)) - begin[owner] < count[owner]
    own = np.flatnonzero(is_target)
    users = interaction[loader.dataset.uid_field].cpu().numpy()[own]
    return users, *compare_lists(owner, scores, own, ~is_target), scores[own].astype(np.float64)


def _is_repeatable(loader: Any) -> bool:
    """Return whether the target alone is not drawn for a user, as sequential models have it."""
    return type(loader._sampler).__name__ == "RepeatableSampler"  # noqa: SLF001  # no other way


def _catalogue(loader: Any) -> IntArray:
    """Return N for each user: what could have been drawn, and the target."""
    users, items = int(loader.dataset.user_num), int(loader.dataset.item_num) - 1
    if _is_repeatable(loader):
        return np.full(users, items, dtype=np.int64)
    used = loader._sampler.used_ids  # noqa: SLF001  # RecBole has no other way to it
    return np.array([items - len(known) + 1 for known in used], dtype=np.int64)
