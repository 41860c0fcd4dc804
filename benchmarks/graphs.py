"""Filtered link prediction from 2 % of the scores: errors and widths of intervals on real graphs.

python benchmarks/graphs.py FOLDER [graph ...] [--share 0.02] [--runs 10]

FOLDER holds NAME.npz of each graph (fb15k-237, wn18rr, codex-m; with or without kg- before the
name): columns h, r, t, and split (0 train, 1 test, 2 validation). The model is ComplEx with
reciprocal relations, trained for minutes on a processor; what it has learned is kept in out/graphs.
Guides know training triples alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import unsample
from unsample.adapters import graphs

KEPT = Path("out/graphs")
GRAPHS = ("fb15k-237", "wn18rr", "codex-m")
#: Metrics, and the K that stands for all ranks: beyond it, a target adds 1/(K + 1) at most.
LAST = 10
ASKED = (f"MRR@{LAST}", "Hits@10", "Hits@1")
WIDTH, EPOCHS, BATCH, DRAWN = 128, 8, 1024, 512


@dataclass(frozen=True, eq=False)
class Triples:
    """The triples of a graph by split."""

    train: np.ndarray
    test: np.ndarray
    valid: np.ndarray

    @property
    def entities(self) -> int:
        """Return how many entities there are."""
        return 1 + max(int(part[:, [0, 2]].max()) for part in (self.train, self.test, self.valid))

    @property
    def relations(self) -> int:
        """Return how many relations there are."""
        return 1 + max(int(part[:, 1].max()) for part in (self.train, self.test, self.valid))


def load(folder: Path, name: str) -> Triples:
    """Read a graph."""
    paths = [folder / f"{name}.npz", folder / f"kg-{name}.npz"]
    held = np.load(next(path for path in paths if path.exists()))
    rows = np.column_stack([held["h"], held["r"], held["t"]]).astype(np.int64)
    return Triples(*(rows[held["split"] == part] for part in range(3)))


def trained(graph: Triples, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return what the model has learned of entities and relations (both directions)."""
    path = KEPT / f"{name}.npz"
    if not path.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        entity, relation = train(graph)
        np.savez(path, entity=entity.astype(np.float16), relation=relation.astype(np.float16))
    held = np.load(path)
    return held["entity"].astype(np.float32), held["relation"].astype(np.float32)


def train(graph: Triples) -> tuple[np.ndarray, np.ndarray]:
    """Fit ComplEx to the answers of training questions."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    head, relation, tail = graph.train.T
    count, kinds = graph.entities, 2 * graph.relations
    entity = torch.nn.Parameter(0.1 * torch.randn(count, WIDTH, device=device))
    kind = torch.nn.Parameter(0.1 * torch.randn(kinds, WIDTH, device=device))
    optimizer = torch.optim.Adagrad([entity, kind], lr=0.1)
    # A question of either direction: the known entity, the relation, and the entity looked for.
    asked = np.concatenate([
        np.column_stack([head, relation, tail]),
        np.column_stack([tail, relation + graph.relations, head]),
    ])  # fmt: skip
    rows = torch.as_tensor(asked, device=device)
    for _ in range(EPOCHS):
        for batch in rows[torch.randperm(len(rows), device=device)].split(BATCH):
            known, weights = entity[batch[:, 0]], kind[batch[:, 1]]
            # Against the answers of the batch and some random entities: all would take hours.
            drawn = torch.randint(count, (DRAWN,), device=device)
            others, place = torch.unique(torch.cat([batch[:, 2], drawn]), return_inverse=True)
            loss = torch.nn.functional.cross_entropy(
                _turned(known, weights, torch) @ entity[others].T, place[: len(batch)]
            )
            loss = loss + 0.005 * (known.abs() ** 3).sum(1).mean()
            loss = loss + 0.005 * (weights.abs() ** 3).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return entity.detach().cpu().numpy(), kind.detach().cpu().numpy()


def _turned(known, weights, torch):  # type: ignore[no-untyped-def]
    """Return the known entity times the relation, as complex numbers."""
    half = WIDTH // 2
    a, b, c, d = known[:, :half], known[:, half:], weights[:, :half], weights[:, half:]
    return torch.cat([a * c - b * d, a * d + b * c], 1)


def asked_vectors(
    asked: graphs.Questions, entity: np.ndarray, relation: np.ndarray, relations: int
) -> np.ndarray:
    """Return a vector for each question, whose products with entities are the scores."""
    half, tails = WIDTH // 2, asked.wanted == 2
    known = entity[np.where(tails, asked.triples[:, 0], asked.triples[:, 2])]
    weights = relation[asked.relations + np.where(tails, 0, relations)]
    a, b, c, d = known[:, :half], known[:, half:], weights[:, :half], weights[:, half:]
    return np.concatenate([a * c - b * d, a * d + b * c], axis=1)


def measure(graph: Triples, name: str, share: float, runs: int) -> Iterator[str]:
    """Yield rows of the table: what guided evaluations find, beside the truth."""
    entity, relation = trained(graph, name)
    more = {"entities": graph.entities, "known": [graph.valid]}
    near = graphs.questions(graph.train, graph.test, **more, guide="neighbours")
    asked = graphs.questions(graph.train, graph.test, **more)
    scorer = asked_vectors(asked, entity, relation, graph.relations), entity
    given = {"items": asked.items, "exclude": asked.exclude, "resamples": 0}
    truth = unsample.evaluate(
        scorer, asked.targets, **given, design="exact", metrics=["MRR", *ASKED]
    )
    budget = int(share * truth.catalogues.sum())
    ways = {"neighbours": near.guide, "relation": asked.guide, "popularity": None}
    for way, guide in ways.items():
        found = [
            unsample.evaluate(
                scorer, asked.targets, **given, design="guided", guide=guide, budget=budget,
                metrics=list(ASKED), rng=seed,
            )
            for seed in range(runs)
        ]  # fmt: skip
        for metric in ASKED:
            true = truth[metric].value
            off = np.array([each[metric].value / true - 1.0 for each in found])
            ends = np.array([each[metric].interval(population=False) for each in found])
            held = ((ends[:, 0] <= true) & (true <= ends[:, 1])).sum()
            half = np.diff(ends, axis=1).mean() / 2.0 / true
            yield (
                f"{name:10} {way:11} {metric:8} {true:.4f}  {100 * np.abs(off).mean():7.2f} % "
                f"{100 * half:8.2f} %  {held}/{runs}"
            )
    gap = truth["MRR"].value - truth[ASKED[0]].value
    most = (1.0 - np.mean(truth.highest <= LAST)) / (LAST + 1)
    yield (
        f"{name:10} MRR {truth['MRR'].value:.4f}: {gap:.4f} above {ASKED[0]}, at most {most:.4f}"
    )


def main() -> None:
    """Print the table of the graphs that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("graphs", nargs="*", default=GRAPHS)
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    print("graph      guide       metric   truth   mean error  half-width  held")
    for name in options.graphs:
        for row in measure(load(options.folder, name), name, options.share, options.runs):
            print(row, flush=True)


if __name__ == "__main__":
    main()
