"""Models, loaders and results of RecBole.

An evaluation with ``mode: uni100`` draws 100 items for each target, with replacement, from the
items that the user has not interacted with, and puts the items of all targets of a user into one
list. `targets` ranks the targets in it. `task` leaves sampling aside and asks the model itself.
`watch` puts the numbers of the whole catalogue beside those that RecBole prints.

RecBole counts users and items from 1; 0 is padding, and no candidate.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, check_level
from unsample._gone import no_attribute
from unsample.adapters._lists import Counting, compare_lists
from unsample.adapters._tasks import Task, check_object, require
from unsample.answers import DEFAULT_METHOD, estimate
from unsample.designs import RowScores
from unsample.errors import DesignError, InputError
from unsample.evidence import Targets

__all__ = ["targets", "task", "watch"]

_MODEL = "a model of recbole", "predict", "device"
#: Users of targets, how many items beat them, tie and are there, and the targets' scores.
_Compared: TypeAlias = tuple[npt.NDArray[Any], ...]
#: Our names of metrics of RecBole, of users with any number of targets.
_OURS = {
    "hit": "HR",
    "mrr": "MRR",
    "map": "AP(norm=min)",
    "recall": "Recall",
    "ndcg": "NDCG",
    "precision": "Precision",
}


def watch(
    trainer: Any,
    *,
    method: str = DEFAULT_METHOD,
    level: float = 0.95,
    ties: str = "random",
    rng: Seed = 0,
) -> Any:
    """Let a trainer tell full-catalogue metrics after each ``uniN`` evaluation, and return it.

    What ``trainer.evaluate`` returns then has beside ``ndcg@10`` the estimate
    ``ndcg@10_full`` and the ends of its interval, ``ndcg@10_low`` and ``ndcg@10_high``, from the
    same drawn items; and so for each metric. Validations have them too.
    ``trainer.full_catalogue`` holds the latest `Estimates`, with their health. Evaluations with
    ``mode: full`` stay as they are.

    Parameters
    ----------
    trainer
        A trainer of RecBole, before ``fit`` or ``evaluate``.
    method
        As in `unsample.estimate`.
    level
        The level of the intervals.
    ties, rng
        As in `unsample.adapters.trec.targets`.
    """
    check_object("trainer", trainer, "a trainer of recbole", "evaluate", "_neg_sample_batch_eval")
    counting, level = Counting(ties, rng), check_level(level)
    evaluate, compare = trainer.evaluate, trainer._neg_sample_batch_eval  # noqa: SLF001
    # The batches of the evaluation under way.
    parts: list[_Compared] = []

    def compare_and_keep(batch: Any) -> Any:
        found = compare(batch)
        # Metrics of values, such as the log loss, know no lists.
        if found[1].ndim == 2:
            drawn = found[1][batch[1], batch[0][trainer.config["ITEM_ID_FIELD"]]]
            user_field = trainer.config["USER_ID_FIELD"]
            parts.append(_compare_batch(drawn.float().cpu().numpy(), batch, user_field))
        return found

    def evaluate_and_add(eval_data: Any, *given: Any, **named: Any) -> Any:
        parts.clear()
        if hasattr(eval_data, "neg_sample_args"):
            _check_uniform(eval_data)
            if not trainer.config["single_spec"]:
                raise DesignError(
                    "trainer must evaluate in one process, got nproc or world_size above 1; "
                    "evaluate the saved model in one"
                )
        results = evaluate(eval_data, *given, **named)
        asked = _our_names(results) if parts else {}
        if asked:
            found = estimate(
                _rank(parts, eval_data, counting).counts,
                metrics=list(asked.values()),
                method=method,
                candidates="all" if _is_repeatable(eval_data) else "unseen",
            )
            for theirs, ours in asked.items():
                numbers = float(found[ours].value), *found[ours].interval(level)
                for end, number in zip(("full", "low", "high"), numbers, strict=True):
                    places = trainer.config["metric_decimal_place"]
                    results[f"{theirs}_{end}"] = round(number, places)
            trainer.full_catalogue = found
        return results

    trainer.evaluate, trainer._neg_sample_batch_eval = evaluate_and_add, compare_and_keep  # noqa: SLF001
    return trainer


def _our_names(results: dict[str, float]) -> dict[str, str]:
    """Return our names of the metrics that have one."""
    split = {theirs: theirs.partition("@") for theirs in results}
    return {theirs: f"{_OURS[name]}@{k}" for theirs, (name, _, k) in split.items() if name in _OURS}


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
    _check_uniform(loader)
    field = loader.dataset.uid_field
    parts = [_compare_batch(_ask(model, "predict", each[0]), each, field) for each in loader]
    return _rank(parts, loader, counting)


def task(model: Any, loader: Any) -> Task:
    """Make a task of a trained model and the loader of its test data under ``mode: full``.

    A user of a sequential model is a test interaction with the history before it; as in RecBole,
    the history stays among the candidates. With other models, what a user has interacted with in
    training and validation is left out of the candidates.
    """
    from scipy.sparse import csr_array

    check_object("model", model, *_MODEL)
    if not hasattr(loader, "is_sequential") or hasattr(loader, "neg_sample_args"):
        raise InputError(
            "loader must be made under mode: full (targets takes uniN), got "
            f"{type(loader).__name__}"
        )
    data = loader.dataset
    item_ids = np.arange(1, int(data.item_num))
    exclude = None
    if loader.is_sequential:
        rows = np.arange(len(data))
        asked = loader.transform(data, data[rows])
        held_out = rows, asked[data.iid_field].numpy() - 1
    else:
        asked, users = loader.user_df, loader.uid_list.numpy()
        held_out, seen = (
            _pairs([items[user].numpy() for user in users])
            for items in (loader.uid2positive_item, loader.uid2history_item)
        )
        yes = np.ones(len(seen[0]), dtype=bool)
        exclude = csr_array((yes, seen), shape=(len(asked), len(item_ids)))

    def everything(rows: IntArray, /) -> npt.NDArray[Any]:
        """Return the scores of all items, by one pass where the model has one."""
        try:
            scores = _ask(model, "full_sort_predict", asked[rows])
        except NotImplementedError:
            interaction = asked[np.repeat(rows, len(item_ids))]
            interaction.update(data.get_item_feature()[np.tile(item_ids, len(rows))])
            return _ask(model, "predict", interaction).reshape(len(rows), -1)
        return scores.reshape(len(rows), -1)[:, 1:]

    return Task.of_pairs(RowScores(everything), held_out, len(item_ids), exclude)


def _pairs(lists: list[IntArray]) -> tuple[IntArray, IntArray]:
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


def _check_uniform(loader: Any) -> None:
    """Refuse a loader that does not draw items uniformly for each target."""
    kind = "made under mode: uniN (task takes full)"
    check_object("loader", loader, kind, "neg_sample_args", "uid2items_num")
    arguments = loader.neg_sample_args
    if arguments["distribution"] != "uniform":
        raise DesignError(
            f"loader must draw items uniformly, got {arguments['distribution']!r}; ranks among "
            "popular items do not tell ranks among all: evaluate with mode: uniN"
        )


def _compare_batch(scores: npt.NDArray[Any], batch: Any, user_field: str) -> _Compared:
    """Return for each target its user, and how many items of the user beat it, tie and are there.

    Its score comes last. As in RecBole, all targets of a user are compared with all items drawn for
    any of them. The rows of a user are the targets, and then the items.
    """
    interaction, owner, positive, _ = batch
    scores = scores.reshape(-1)
    if np.isnan(scores).any():
        raise InputError("scores must not be NaN, got some; the model has diverged")
    owner = owner.numpy()
    count = np.bincount(positive.numpy())
    begin = np.searchsorted(owner, np.arange(len(count)))
    is_target = np.arange(len(owner)) - begin[owner] < count[owner]
    own = np.flatnonzero(is_target)
    users = interaction[user_field].cpu().numpy()[own]
    return users, *compare_lists(owner, scores, own, ~is_target), scores[own].astype(np.float64)


def _rank(parts: list[_Compared], loader: Any, counting: Counting) -> Targets:
    """Rank the targets of all batches."""
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


def _is_repeatable(loader: Any) -> bool:
    """Return whether all items but the target may be drawn, as for sequential models."""
    return type(loader._sampler).__name__ == "RepeatableSampler"  # noqa: SLF001  # no other way


def _catalogue(loader: Any) -> IntArray:
    """Return N for each user: what could have been drawn, and the target."""
    users, items = int(loader.dataset.user_num), int(loader.dataset.item_num) - 1
    if _is_repeatable(loader):
        return np.full(users, items, dtype=np.int64)
    used = loader._sampler.used_ids  # noqa: SLF001  # RecBole has no other way to it
    return np.array([items - len(known) + 1 for known in used], dtype=np.int64)


def __getattr__(name: str) -> object:
    raise no_attribute(__name__, name)
