"""A callback for Lightning: sampled scores of validation steps in, full-catalogue metrics logged.

It works with ``lightning`` and with ``pytorch_lightning``, whichever the program has imported.
Ranks are counted in every process, and estimates are made of the counts of all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from unsample._checks import check_integer, check_level
from unsample.adapters._doors import with_ends
from unsample.adapters._tasks import require
from unsample.answers import DEFAULT_METHOD, DEFAULT_METRICS, Estimates
from unsample.errors import InputError
from unsample.metrics import Metric

__all__ = ["callback"]


def callback(
    *,
    items: int,
    sampled: int,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str = DEFAULT_METHOD,
    candidates: str | None = None,
    level: float = 0.95,
    replacement: bool = True,
    ties: str = "random",
    rng: int = 0,
    loader: int = 0,
) -> Any:
    """Return a callback for ``Trainer(callbacks=[...])``.

    After each validation it logs ``val/NDCG@10_full``, the estimate, with ``val/NDCG@10_low`` and
    ``val/NDCG@10_high``, the ends of its interval; after a test the same as ``test/...``. They
    can be monitored as any other number. ``result`` of the callback holds the latest `Estimates`,
    with their health.

    ``validation_step`` returns the scores: a tensor with a row for each target, its own score first
    and then those of the items sampled for it; or a dict that has them under ``"scores"``, or the
    ranks among ``sampled + 1`` items under ``"ranks"``.

    Parameters
    ----------
    items, sampled, replacement, metrics, method, candidates
        As in `unsample.estimate`; ``items`` and ``sampled`` are one number each.
    level
        The level of the intervals.
    ties, rng
        ``"random"``, ``"optimistic"`` or ``"pessimistic"``, and the seed of the first.
    loader
        Which dataloader to look at, where there are several.
    """
    options = {
        "items": items,
        "sampled": sampled,
        "metrics": metrics,
        "method": method,
        "candidates": candidates,
        "replacement": replacement,
        "ties": ties,
    }
    return _kind()(
        options,
        level=check_level(level),
        seed=check_integer("rng", rng, minimum=0),
        loader=check_integer("loader", loader, minimum=0),
    )


class _Collecting:
    """What the callback does; `_kind` makes it a callback of the library that is there."""

    def __init__(self, options: dict[str, Any], *, level: float, seed: int, loader: int) -> None:
        super().__init__()
        self.options, self.level, self.seed, self.loader = options, level, seed, loader
        self.metric = self._metric(0)
        self.result: Estimates | None = None

    def __reduce__(self) -> Any:
        # The class is made when it is asked for, and processes that are spawned ask again.
        rest = {"level": self.level, "rng": self.seed, "loader": self.loader}
        return partial(callback, **(self.options | rest)), ()

    def _metric(self, process: int) -> Any:
        """Return an empty metric; processes must not break ties alike."""
        kind = require("lightning", "unsample.adapters.torchmetrics").EstimatedMetrics
        return kind(**self.options, rng=np.random.default_rng([self.seed, process]))

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self.metric = self._metric(trainer.global_rank)

    def _begin(self, _trainer: Any, pl_module: Any) -> None:
        self.metric = self.metric.to(pl_module.device)
        self.metric.reset()

    def _collect(
        self,
        trainer: Any,
        _module: Any,
        outputs: Any,
        _batch: Any,
        _index: int,
        dataloader_idx: int = 0,
    ) -> None:
        if dataloader_idx != self.loader:
            return
        given = outputs if isinstance(outputs, Mapping) else {"scores": outputs}
        found = {name: given[name] for name in ("scores", "ranks") if name in given}
        if len(found) != 1 or not hasattr(next(iter(found.values())), "ndim"):
            names = f" of {', '.join(map(str, outputs))}" if isinstance(outputs, Mapping) else ""
            step = "test_step" if trainer.testing else "validation_step"
            raise InputError(
                f"{step} must return a tensor of scores, a row for each target with its own score "
                f'first, or a dict with either "scores" or "ranks", got '
                f"{type(outputs).__name__}{names}"
            )
        if "scores" in found:
            self.metric.update(found["scores"].detach())
        else:
            self.metric.update_ranks(found["ranks"])

    def _finish(self, trainer: Any, pl_module: Any) -> None:
        if trainer.sanity_checking:
            return
        self.result = self.metric.result()
        prefix = "test" if trainer.testing else "val"
        numbers: dict[str, float] = {}
        for name, found in self.result.items():
            numbers |= with_ends(f"{prefix}/{name}", found, self.level)
        # Equal in all processes, whose mean this is.
        pl_module.log_dict(numbers, sync_dist=True)

    on_validation_epoch_start = on_test_epoch_start = _begin
    on_validation_batch_end = on_test_batch_end = _collect
    on_validation_epoch_end = on_test_epoch_end = _finish


@cache
def _kind() -> type[Any]:
    """Return the callback as a class of the library that the program has imported."""
    other = "pytorch_lightning" in sys.modules and "lightning" not in sys.modules
    base = require("lightning", "pytorch_lightning" if other else "lightning.pytorch").Callback
    return type("FullCatalogue", (_Collecting, base), {"__doc__": _Collecting.__doc__})
