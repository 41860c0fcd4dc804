"""Models, loaders and results of RecBole.

An evaluation with ``mode: uni100`` draws 100 items for each target, with replacement, from the
items that the user has not interacted with, and puts the items of all targets of a user into one
list. `targets` ranks the targets in it. `task` leaves sampling aside and asks the model itself.
`watch` puts the numbers of the whole catalogue beside those that RecBole prints.

RecBole counts users and items from 1; 0 is padding, and no candidate.
"""

from __future__ import annotations

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

_MODEL = "a model of recbole", "predict", "device"
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
    evaluate, compare = trainer.evaluate, trainer._neg_sample_batch_eval  # noqa: SLF001
    # The scored rows of the evaluation under way.
    parts: list[dict[str, npt.NDArray[Any]]] = []

    def compare_and_keep(batch: Any) -> Any:
        found = compare(batch)
        # Metrics of values, such as the log loss, know no lists.
        if found[1].ndim == 2:
            drawn = found[1][batch[1], batch[0][trainer.config["ITEM_ID_FIELD"]]]
            parts.append(_rows(drawn.float().cpu().numpy(), batch, trainer.config["USER_ID_FIELD"]))
        return found

    def evaluate_and_add(eval_data: Any, *given: Any, **named: Any) -> Any:
        parts.clear()
        if hasattr(eval_data, "neg_sample_args"):
            _check_uniform(eval_data)
            if not trainer.config["single_spec"]:
                raise DesignError("trainer must evaluate in one process, got several; use one")
        results = evaluate(eval_data, *given, **named)
        split = {theirs: theirs.partition("@") for theirs in results if parts}
        asked = {theirs: f"{_OURS[n]}@{k}" for theirs, (n, _, k) in split.items() if n in _OURS}
        if asked:
            found = trainer.full_catalogue = estimate(
                _rank(parts, eval_data, "random", 0).counts,
                metrics=list(asked.values()),
                protocol="all" if _is_repeatable(eval_data) else "unseen",
            )
            decimals = trainer.config["metric_decimal_place"]
            for theirs, ours in asked.items():
                numbers = found[ours].value, *found[ours].interval(level)
                for end, number in zip(("full", "low", "high"), numbers, strict=True):
                    results[f"{theirs}_{end}"] = round(float(number), decimals)
        return results

    trainer.evaluate, trainer._neg_sample_batch_eval = evaluate_and_add, compare_and_keep  # noqa: SLF001
    return trainer


def targets(model: Any, loader: Any, *, ties: str = "random", rng: Seed = 0) -> Targets:
    """Rank each target among the items that a ``uni100`` loader draws for its user.

    ``loader`` is that of test (or validation) data under ``mode: uniN``, as ``data_preparation``
    makes it. Its items are drawn anew on every pass, by the seed that RecBole was given. ``ties``
    and ``rng`` are as in `unsample.adapters.trec.targets`.
    """
    rule = check_ties(ties, whole=True)
    check_object("model", model, *_MODEL)
    _check_uniform(loader)
    field = loader.dataset.uid_field
    parts = [_rows(_ask(model, "predict", batch[0]), batch, field) for batch in loader]
    return _rank(parts, loader, rule, rng)


def task(model: Any, loader: Any) -> dict[str, Any]:
    """Return the arguments of `unsample.evaluate` for a trained model, by name.

    ``loader`` is that of test data under ``mode: full``. A user of a sequential model is a test
    interaction with the history before it; as in RecBole, the history stays among the candidates.
    With other models, what a user has interacted with in training and validation is left out.
    """
    check_object("model", model, *_MODEL)
    if not hasattr(loader, "is_sequential") or hasattr(loader, "neg_sample_args"):
        kind = type(loader).__name__
        raise InputError(f"loader must be made under mode: full (targets takes uniN), got {kind}")
    from scipy.sparse import csr_array

    data, exclude = loader.dataset, None
    item_ids = np.arange(1, int(data.item_num))
    if loader.is_sequential:
        rows = np.arange(len(data))
        asked = loader.transform(data, data[rows])
        wanted = rows, asked[data.iid_field].numpy() - 1
    else:
        asked, users = loader.user_df, loader.uid_list.numpy()
        wanted, seen = (
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

    return {
        "scorer": RowScores(everything),
        "targets": tuple(np.unique(np.array(wanted, dtype=np.int64), axis=1)),  # each pair once
        "items": len(item_ids),
        "exclude": exclude,
    }


def _pairs(lists: list[IntArray]) -> tuple[IntArray, IntArray]:
    """Return the row and the item of each entry; RecBole counts items from 1."""
    rows = np.repeat(np.arange(len(lists)), [len(items) for items in lists])
    return rows, np.concatenate(lists).astype(np.int64) - 1


def _ask(model: Any, method: str, interaction: Any) -> npt.NDArray[Any]:
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


def _rows(scores: npt.NDArray[Any], batch: Any, user_field: str) -> dict[str, npt.NDArray[Any]]:
    """Return the scored rows of a batch; those of a user are the targets, and then the items."""
    interaction, owner, positive, _ = batch
    owner, count = owner.numpy(), np.bincount(positive.numpy())
    begin = np.searchsorted(owner, np.arange(len(count)))
    target = np.arange(len(owner)) - begin[owner] < count[owner]
    users = interaction[user_field].cpu().numpy()
    return {"user": users, "score": scores.reshape(-1).astype(np.float64), "target": target}


def _rank(parts: list[dict[str, npt.NDArray[Any]]], loader: Any, ties: str, rng: Seed) -> Targets:
    """Rank the targets of all batches among the items drawn for any target of their user."""
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    known = np.ones(int(loader.dataset.user_num))
    if not _is_repeatable(loader):  # what a user knows, its targets included, is not drawn
        known = np.array([len(each) for each in loader._sampler.used_ids])  # noqa: SLF001
    own = np.bincount(rows["user"], rows["target"], minlength=len(known))
    rows["items"] = (loader.dataset.item_num - 1 - known + own).astype(np.int64)[rows["user"]]
    read = Read(rows="scores", ties=ties, rng=rng)
    return read_targets(rows, Asked(read=read))


def _is_repeatable(loader: Any) -> bool:
    """Return whether all items but the target may be drawn, as for sequential models."""
    return type(loader._sampler).__name__ == "RepeatableSampler"  # noqa: SLF001  # no other way
