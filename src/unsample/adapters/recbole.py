"""Models, loaders and results of RecBole.

An evaluation with ``mode: uni100`` draws 100 items for each target, with replacement, from the
items that the user has not interacted with, and puts the items of all targets of a user into one
list. `targets` ranks the targets in it. `task` leaves sampling aside and asks the model itself.
`watch` puts the numbers of the whole catalogue beside those that RecBole prints.

RecBole counts users and items from 1; 0 is padding, and no candidate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, check_level
from unsample.adapters._install import check_object, require
from unsample.counts import Targets, check_ties
from unsample.errors import DesignError, InputError
from unsample.questions.estimate.ask import estimate
from unsample.scoring import RowScores
from unsample.tables import Asked, Read, read_targets

__all__ = ["targets", "task", "watch"]

#: What a model is called in messages, and attributes that it has.
_MODEL = ("a model of recbole", "predict", "device")
#: Our names of metrics of RecBole, of users with any number of targets.
_OURS = {
    "hit": "HR",
    "mrr": "MRR",
    "map": "AP(norm=min)",
    "recall": "Recall",
    "ndcg": "NDCG",
    "precision": "Precision",
}


def watch(trainer: Any, *, level: float = 0.95) -> Any:
    """Add full-catalogue metrics to each ``uniN`` evaluation of a trainer, and return the trainer.

    The result of ``trainer.evaluate`` then has, beside ``ndcg@10``, the estimate ``ndcg@10_full``
    and the ends of its interval at ``level``, ``ndcg@10_low`` and ``ndcg@10_high``, from the same
    drawn items. The other metrics and validations have them too.
    ``trainer.full_catalogue`` holds the latest `Estimates`. Evaluations with ``mode: full`` stay as
    they are. Ties are broken at random.
    """
    check_object("trainer", trainer, "a trainer of recbole", "evaluate", "_neg_sample_batch_eval")
    level = check_level(level)
    evaluate = trainer.evaluate
    compare = trainer._neg_sample_batch_eval  # noqa: SLF001
    # The scored rows of the evaluation under way.
    parts: list[dict[str, npt.NDArray[Any]]] = []

    def compare_and_keep(batch: Any) -> Any:
        compared = compare(batch)
        table = compared[1]
        # Metrics of values, such as the log loss, know no lists.
        if table.ndim == 2:
            interaction, owner, *_ = batch
            drawn = table[owner, interaction[trainer.config["ITEM_ID_FIELD"]]]
            user_field = trainer.config["USER_ID_FIELD"]
            parts.append(_rows(drawn.float().cpu().numpy(), batch, user_field=user_field))
        return compared

    def evaluate_and_add(eval_data: Any, *arguments: Any, **named: Any) -> Any:
        parts.clear()
        if hasattr(eval_data, "neg_sample_args"):
            _check_uniform(eval_data)
            if not trainer.config["single_spec"]:
                raise DesignError("trainer must evaluate in one process, got several; use one")
        results = evaluate(eval_data, *arguments, **named)
        asked = _our_names(results) if parts else {}
        if asked:
            estimates = estimate(
                _rank(parts, eval_data, ties="random", rng=0).counts,
                metrics=list(asked.values()),
                protocol="all" if _is_repeatable(eval_data) else "unseen",
            )
            trainer.full_catalogue = estimates
            decimals = trainer.config["metric_decimal_place"]
            for theirs, ours in asked.items():
                low, high = estimates[ours].interval(level)
                numbers = {"full": estimates[ours].value, "low": low, "high": high}
                for end, number in numbers.items():
                    results[f"{theirs}_{end}"] = round(float(number), decimals)
        return results

    trainer.evaluate = evaluate_and_add
    trainer._neg_sample_batch_eval = compare_and_keep  # noqa: SLF001
    return trainer


def _our_names(theirs: Iterable[str]) -> dict[str, str]:
    """Return our name of each of RecBole's metrics that we know.

    >>> _our_names(["ndcg@10", "hit@5", "gauc"])
    {'ndcg@10': 'NDCG@10', 'hit@5': 'HR@5'}
    """
    ours = {}
    for name in theirs:
        metric, _, cutoff = name.partition("@")
        if metric in _OURS:
            ours[name] = f"{_OURS[metric]}@{cutoff}"
    return ours


def targets(model: Any, loader: Any, *, ties: str = "random", rng: Seed = 0) -> Targets:
    """Rank each target among the items that a ``uni100`` loader draws for its user.

    Parameters
    ----------
    model
        A trained model.
    loader
        The loader of test (or validation) data under ``mode: uniN``, as ``data_preparation`` makes
        it. Its items are drawn anew on every pass, by the seed that RecBole was given.
    ties, rng
        As in `unsample.adapters.trec.targets`.

    Returns
    -------
    Targets
        The ranks, with the number of sampled items and of candidates of each target.

    Raises
    ------
    InputError
        If the model or the loader is of another kind.
    DesignError
        If the loader does not draw items uniformly.
    """
    rule = check_ties(ties, whole=True)
    check_object("model", model, *_MODEL)
    _check_uniform(loader)
    user_field = loader.dataset.uid_field
    parts = []
    for batch in loader:
        scores = _ask(model, batch[0], method="predict")
        parts.append(_rows(scores, batch, user_field=user_field))
    return _rank(parts, loader, ties=rule, rng=rng)


def task(model: Any, loader: Any) -> dict[str, Any]:
    """Return the arguments of `unsample.evaluate` for a trained model, by name.

    A user of a sequential model is a test interaction with the history before it; as in RecBole,
    the history stays among the candidates. With other models, the items of a user in training and
    validation are left out.

    Parameters
    ----------
    model
        A trained model.
    loader
        The loader of test data under ``mode: full``.

    Returns
    -------
    dict
        ``scorer``, ``targets``, ``items`` and ``exclude``, for ``unsample.evaluate(**task)``.

    Raises
    ------
    InputError
        If the model or the loader is of another kind.
    """
    check_object("model", model, *_MODEL)
    if not hasattr(loader, "is_sequential") or hasattr(loader, "neg_sample_args"):
        kind = type(loader).__name__
        raise InputError(f"loader must be made under mode: full (targets takes uniN), got {kind}")
    from scipy.sparse import csr_array

    data = loader.dataset
    exclude = None
    item_ids = np.arange(1, int(data.item_num))
    if loader.is_sequential:
        rows = np.arange(len(data))
        asked = loader.transform(data, data[rows])
        wanted = (rows, asked[data.iid_field].numpy() - 1)
    else:
        asked = loader.user_df
        users = loader.uid_list.numpy()
        wanted = _pairs([loader.uid2positive_item[user].numpy() for user in users])
        seen = _pairs([loader.uid2history_item[user].numpy() for user in users])
        yes = np.ones(len(seen[0]), dtype=bool)
        exclude = csr_array((yes, seen), shape=(len(asked), len(item_ids)))

    def everything(rows: IntArray, /) -> npt.NDArray[Any]:
        """Return the scores of all items, by one pass where the model has one."""
        try:
            scores = _ask(model, asked[rows], method="full_sort_predict")
        except NotImplementedError:
            interaction = asked[np.repeat(rows, len(item_ids))]
            interaction.update(data.get_item_feature()[np.tile(item_ids, len(rows))])
            return _ask(model, interaction, method="predict").reshape(len(rows), -1)
        return scores.reshape(len(rows), -1)[:, 1:]

    return {
        "scorer": RowScores(everything),
        "targets": tuple(np.unique(np.array(wanted, dtype=np.int64), axis=1)),  # each pair once
        "items": len(item_ids),
        "exclude": exclude,
    }


def _pairs(lists: list[IntArray]) -> tuple[IntArray, IntArray]:
    """Return the row and the item of each entry; RecBole counts items from 1.

    >>> _pairs([np.array([3]), np.array([1, 2])])
    (array([0, 1, 1]), array([2, 0, 1]))
    """
    rows = np.repeat(np.arange(len(lists)), [len(items) for items in lists])
    return rows, np.concatenate(lists).astype(np.int64) - 1


def _ask(model: Any, interaction: Any, *, method: str) -> npt.NDArray[Any]:
    """Ask a model without gradients, in evaluation mode, as RecBole's own evaluation leaves it."""
    model.eval()
    with require("recbole", "torch").no_grad():
        scores = getattr(model, method)(interaction.to(model.device))
    return np.asarray(scores.float().cpu().numpy())


def _check_uniform(loader: Any) -> None:
    """Refuse a loader that does not draw items uniformly for each target."""
    kind = "made under mode: uniN (task takes full)"
    check_object("loader", loader, kind, "neg_sample_args", "uid2items_num")
    drawn = loader.neg_sample_args["distribution"]
    if drawn != "uniform":
        raise DesignError(
            f"loader must draw items uniformly, got {drawn!r}; ranks among popular items do not "
            "tell ranks among all: evaluate with mode: uniN"
        )


def _rows(scores: npt.NDArray[Any], batch: Any, *, user_field: str) -> dict[str, npt.NDArray[Any]]:
    """Return the scored rows of a batch: of each user first the targets, and then the items."""
    interaction, owner_of_rows, owner_of_targets, _ = batch
    owner = owner_of_rows.numpy()
    targets_of_owner = np.bincount(owner_of_targets.numpy())
    begin = np.searchsorted(owner, np.arange(len(targets_of_owner)))
    number = np.arange(len(owner)) - begin[owner]
    return {
        "user": interaction[user_field].cpu().numpy(),
        "score": scores.reshape(-1).astype(np.float64),
        "target": number < targets_of_owner[owner],
    }


def _rank(
    parts: list[dict[str, npt.NDArray[Any]]], loader: Any, *, ties: str, rng: Seed
) -> Targets:
    """Rank the targets of all batches among the items drawn for any target of their user."""
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    known = np.ones(int(loader.dataset.user_num))
    if not _is_repeatable(loader):  # what a user knows, its targets included, is not drawn
        known = np.array([len(ids) for ids in loader._sampler.used_ids])  # noqa: SLF001
    own = np.bincount(rows["user"], rows["target"], minlength=len(known))
    rows["items"] = (loader.dataset.item_num - 1 - known + own).astype(np.int64)[rows["user"]]
    read = Read(rows="scores", ties=ties, rng=rng)
    return read_targets(rows, Asked(read=read))


def _is_repeatable(loader: Any) -> bool:
    """Return whether all items but the target may be drawn, as for sequential models."""
    return type(loader._sampler).__name__ == "RepeatableSampler"  # noqa: SLF001  # no other way
