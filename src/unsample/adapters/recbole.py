"""Models, loaders and results of RecBole.

An evaluation with ``mode: uni100`` draws 100 items for each target, with replacement, from the
items that the user has not interacted with, and puts the items of all targets of a user into one
list. `targets` ranks the targets in it. Metrics of such lists depend on how many targets a user
has, so `published`, which reads those metrics, needs one for each. `task` leaves sampling aside
and asks the model itself. `run` and `watch` put the numbers of the whole catalogue beside those
that RecBole prints.

RecBole counts users and items from 1; 0 is padding, and no candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import answers
from unsample._checks import IntArray, Seed, check_level
from unsample.adapters._doors import with_ends
from unsample.adapters._lists import Counting
from unsample.adapters._tasks import ModelScores, Pairs, Task, check_object, require
from unsample.answers import DEFAULT_METHOD, DEFAULT_METRICS, Estimates, Published
from unsample.errors import DesignError, InputError
from unsample.evidence import Targets, compare_lists
from unsample.metrics import Metric

__all__ = ["published", "run", "targets", "task", "watch"]

_MODEL = "a model of recbole", ("predict", "device")
#: Metrics of RecBole that are metrics of the one target's rank, and what each is the same as.
_OF_RANK = {name: name for name in ("hit", "mrr", "ndcg", "precision")}
_OF_RANK |= {"recall": "hit", "map": "mrr"}
#: Our names of metrics of RecBole, of users with any number of targets.
_OURS = {
    "hit": "HR",
    "mrr": "MRR",
    "map": "AP(norm=min)",
    "recall": "Recall",
    "ndcg": "NDCG",
    "precision": "Precision",
}
#: What is called after each evaluation, with RecBole's results and the estimates.
After = Callable[[Mapping[str, float], Estimates], object]


def watch(
    trainer: Any,
    *,
    method: str = DEFAULT_METHOD,
    level: float = 0.95,
    ties: str = "random",
    rng: Seed = 0,
    after: After | None = None,
) -> Any:
    """Let a trainer tell full-catalogue metrics after each ``uniN`` evaluation, and return it.

    What ``trainer.evaluate`` returns, and RecBole logs, then has beside ``ndcg@10`` the estimate
    ``ndcg@10_full`` and the ends of its interval, ``ndcg@10_low`` and ``ndcg@10_high``, from the
    same drawn items; and so for each metric. Validations have them too, so that
    ``valid_metric: NDCG@10_full`` stops training by it. ``trainer.full_catalogue`` holds the latest
    `Estimates`, with their health. Evaluations with ``mode: full`` stay as they are.

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
    after
        A function that is called after each evaluation, with RecBole's results and the `Estimates`.
    """
    kind = "a trainer of recbole"
    check_object("trainer", trainer, kind, ["evaluate", "evaluator", "_neg_sample_batch_eval"])
    _Watch(trainer, Counting(ties, rng), method, check_level(level), after).begin()
    return trainer


def run(
    model: str | None = None,
    dataset: str | None = None,
    config_file_list: list[str] | None = None,
    config_dict: dict[str, Any] | None = None,
    saved: bool = True,
    *,
    method: str = DEFAULT_METHOD,
    level: float = 0.95,
    after: After | None = None,
) -> dict[str, Any]:
    """Do what ``recbole.quick_start.run_recbole`` does, with a trainer that is watched.

    The results that it returns have full-catalogue metrics beside the sampled ones. The first
    arguments are those of ``run_recbole``, the others those of `watch`.
    """
    quick: Any = require("recbole", "recbole.quick_start.quick_start")
    find = quick.get_trainer

    def get_trainer(*names: Any) -> Callable[..., Any]:
        made = find(*names)
        return lambda *given: watch(made(*given), method=method, level=level, after=after)

    # RecBole lets another trainer be chosen only here.
    quick.get_trainer = get_trainer
    try:
        found: dict[str, Any] = quick.run_recbole(
            model, dataset, config_file_list, config_dict, saved
        )
    finally:
        quick.get_trainer = find
    return found


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
    return _rank(
        [_compare_batch(_ask(model, "predict", batch[0]), batch, loader) for batch in loader],
        loader,
        counting,
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
        # Names such as hit@10_full, which `watch` adds, are no metrics of the sample.
        if family in _OF_RANK and k.isdecimal():
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
        candidates=_candidates(loader),
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


def _compare_batch(
    scores: npt.NDArray[Any], batch: Any, loader: Any
) -> tuple[npt.NDArray[Any], ...]:
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
    users = interaction[loader.dataset.uid_field].cpu().numpy()[own]
    return users, *compare_lists(owner, scores, own, ~is_target), scores[own].astype(np.float64)


def _rank(parts: list[tuple[npt.NDArray[Any], ...]], loader: Any, counting: Counting) -> Targets:
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


@dataclass(eq=False)
class _Watch:
    """Stands between a trainer and its evaluations, and collects what they compare."""

    trainer: Any
    counting: Counting
    method: str
    level: float
    after: After | None
    #: The loader of the evaluation under way, if it is a sampled one, and its batches so far.
    loader: Any = None
    parts: list[tuple[npt.NDArray[Any], ...]] = field(default_factory=list)

    def begin(self) -> None:
        """Take the places of the trainer's own methods."""
        trainer = self.trainer
        self.evaluate, self.compare = trainer.evaluate, trainer._neg_sample_batch_eval  # noqa: SLF001
        self.measure = trainer.evaluator.evaluate
        trainer.evaluate, trainer._neg_sample_batch_eval = self._evaluate, self._compare  # noqa: SLF001
        trainer.evaluator.evaluate = self._measure

    def _evaluate(self, eval_data: Any, *given: Any, **named: Any) -> Any:
        self.parts, self.loader = [], None
        if eval_data and hasattr(eval_data, "neg_sample_args"):
            _uniform_sample(eval_data)
            if not self.trainer.config["single_spec"]:
                raise DesignError(
                    "trainer must evaluate in one process, got nproc or world_size above 1; "
                    "evaluate the saved model in one"
                )
            self.loader = eval_data
        return self.evaluate(eval_data, *given, **named)

    def _compare(self, batch: Any) -> Any:
        found = self.compare(batch)
        scores, rows = found[1], batch[1]
        # Metrics of values, such as the log loss, know no lists.
        if scores.ndim == 2:
            drawn = scores[rows, batch[0][self.loader.dataset.iid_field]]
            self.parts.append(_compare_batch(drawn.float().cpu().numpy(), batch, self.loader))
        return found

    def _measure(self, collected: Any) -> Any:
        results = self.measure(collected)
        names = {theirs: _our_name(theirs) for theirs in results}
        asked = {theirs: ours for theirs, ours in names.items() if ours is not None}
        if self.parts and asked:
            found = answers.estimate(
                _rank(self.parts, self.loader, self.counting).counts,
                metrics=list(asked.values()),
                method=self.method,
                candidates=_candidates(self.loader),
                resamples=0,
            )
            decimals = self.trainer.config["metric_decimal_place"]
            for theirs, ours in asked.items():
                ends = with_ends(theirs, found[ours], self.level)
                results |= {name: round(number, decimals) for name, number in ends.items()}
            self.trainer.full_catalogue = found
            if self.after is not None:
                self.after(results, found)
        return results


def _our_name(theirs: str) -> str | None:
    """Return our name of a metric such as ndcg@10; None where estimates know none."""
    family, _, k = theirs.partition("@")
    return f"{_OURS[family]}@{k}" if family in _OURS else None


def _candidates(loader: Any) -> str:
    return "all" if _is_repeatable(loader) else "unseen"
