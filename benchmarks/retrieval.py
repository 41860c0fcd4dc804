"""Retrieval on a corpus that was cut down, beside the full corpus: errors, widths, coverage, cost.

python benchmarks/retrieval.py [cuts] [pools] [guided] [plan] [--documents 1000000] [--queries 500]
                               [--draws 10] [--world mixed]

Documents are vectors of 64 dimensions in clusters of all sizes; those that a query is nearest to
are relevant, with grades. The search sees other vectors, which are off by noise. In the world
``mixed`` documents differ in how far they are off, so that some relevant ones are found far below;
in ``even`` all are off alike, so that nearly all are found in the first hundreds and P(R) ends
abruptly. ``cuts`` keeps all relevant documents and draws some of the others, anew each time, and
estimates; ``pools`` keeps the best 100 of each query by the first 16 dimensions, too, and draws
1 % of the others; ``guided`` evaluates by all dimensions on a budget, guided by the first 16;
``plan`` says which part of the corpus an error of 2 % needs, and ``cuts`` measures it.

``--world names`` is real: names of countries, languages and currencies in 300 languages, from the
package babel. A query is an English name; relevant are the German, Dutch and Scandinavian names
(grade 2) and the Romance ones (grade 1) of the same thing. Texts are compared by their letters,
three at a time.
"""

from __future__ import annotations

import argparse
import time
import warnings
import zlib
from collections.abc import Iterator

import numpy as np

import unsample
from unsample.adapters import retrieval

NAMES = ("NDCG@10", "MRR@10", "Recall@100")
DIMENSIONS, FIRST = 64, 16
SHARES = (0.01, 0.05, 0.1)
#: How far off the vectors of the search are, and how much that differs between documents.
NOISE = {"mixed": (0.6, 0.8), "even": (0.9, 0.0)}


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors of length one."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make(world: str, documents: int, queries: int) -> retrieval.RetrievalTask:
    """Return what is searched, and what should be found."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    # The first dimensions tell most, as in vectors that were learned to be cut short.
    scale = (1.0 / np.sqrt(1.0 + np.arange(DIMENSIONS) / FIRST)).astype(np.float32)
    clusters = max(1, documents // 100)
    chances = rng.dirichlet(np.ones(clusters))
    true = normal(clusters, DIMENSIONS)[rng.choice(clusters, documents, p=chances)]
    true += 0.7 * normal(documents, DIMENSIONS)
    asked = true[rng.choice(documents, queries, replace=False)] + 0.5 * normal(queries, DIMENSIONS)
    noise, spread = NOISE[world]
    off = noise * np.exp(spread * normal(documents, 1))
    searched = unit((true + off * normal(documents, DIMENSIONS)) * scale)
    seen = unit((asked + 0.5 * normal(queries, DIMENSIONS)) * scale)
    true, asked = unit(true * scale), unit(asked * scale)
    qrels = {}
    for query in range(queries):
        size = 1 + int(rng.poisson(3))
        likeness = true @ asked[query]
        best = np.argpartition(-likeness, size)[:size]
        best = best[np.argsort(-likeness[best])]
        qrels[query] = {int(each): 3 - 3 * place // size for place, each in enumerate(best)}
    return retrieval.task(seen, searched, qrels)


#: Languages in which a name is relevant, by grade.
GRADES = {2: ("de", "nl", "sv", "da", "nb", "is"), 1: ("fr", "es", "it", "pt", "ro", "ca", "gl")}


def letters(texts: list[str], width: int = 512) -> np.ndarray:
    """Return how often each three letters occur, in so many places, rare ones weighed up."""
    found = np.zeros((len(texts), width), dtype=np.float32)
    for row, text in enumerate(texts):
        padded = f"  {text.casefold()} "
        for start in range(len(padded) - 2):
            found[row, zlib.crc32(padded[start : start + 3].encode()) % width] += 1.0
    return unit(np.sqrt(found) * np.log(len(texts) / (1.0 + (found > 0).sum(axis=0))))


def names(queries: int) -> retrieval.RetrievalTask:
    """Return English names, and names in other languages that should be found by them."""
    import babel
    from babel.localedata import locale_identifiers

    known: dict[tuple[str, str], dict[str, str]] = {}
    for language in sorted(each for each in locale_identifiers() if "_" not in each):
        locale = babel.Locale.parse(language)
        for kind in ("territories", "languages", "currencies"):
            for code, name in getattr(locale, kind).items():
                known.setdefault((kind, code), {})[language] = name
    things = [thing for thing, named in sorted(known.items()) if "en" in named]
    grade_of = {language: grade for grade, listed in GRADES.items() for language in listed}
    asked = np.random.default_rng(0).permutation(len(things))
    qrels: dict[int, dict[int, int]] = {}
    texts, documents = [], []
    for place in asked:
        named = known.pop(things[place])
        grades: dict[str, int] = {}
        for language, grade in grade_of.items():
            if named.get(language, named["en"]) != named["en"]:
                grades[named[language]] = max(grade, grades.get(named[language], 0))
        if grades and len(texts) < queries:
            first = len(documents)
            qrels[len(texts)] = {first + n: grade for n, grade in enumerate(grades.values())}
            texts.append(named["en"])
            documents += grades
        else:
            # Names of what is asked for in other languages are no documents: nobody judged them.
            documents += sorted(set(named.values()))
    vectors = letters([*texts, *documents])
    return retrieval.task(vectors[: len(texts)], vectors[len(texts) :], qrels)


def truth_of(task: retrieval.RetrievalTask) -> dict[str, float]:
    """Return the metrics on the full corpus."""
    found = unsample.evaluate(
        task.scorer, task.targets, items=task.items, relevance=task.relevance, resamples=0,
        metrics=list(NAMES), design="exact",
    )  # fmt: skip
    return {name: found[name].value for name in NAMES}


def qrels_of(task: retrieval.RetrievalTask) -> dict[int, dict[int, float]]:
    """Return the relevant documents as a dict of dicts."""
    found: dict[int, dict[int, float]] = {}
    for query, document, grade in zip(*task.targets, task.relevance, strict=True):
        found.setdefault(int(query), {})[int(document)] = float(grade)
    return found


def cuts(
    task: retrieval.RetrievalTask,
    truth: dict[str, float],
    draws: int,
    shares: tuple[float, ...],
    hard: np.ndarray | None = None,
) -> Iterator[str]:
    """Yield a row for each cut and metric; ``hard`` documents are kept as well."""
    queries, vectors = task.scorer.user_factors, task.scorer.item_factors
    qrels, relevant = qrels_of(task), np.unique(task.targets[1])
    certain = relevant if hard is None else np.union1d(relevant, hard)
    others = np.setdiff1d(np.arange(task.items), certain)
    yield f"{len(certain):,} documents kept for certain"
    yield (
        "drawn  metric      truth   cut corpus  error   half-width, holds  these queries  seconds"
    )
    for share in shares:
        rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in NAMES}
        start = time.process_time()
        for draw in range(draws):
            rng = np.random.default_rng([draw, round(1e4 * share)])
            drawn = rng.choice(others, round(share * len(others)), replace=False)
            kept = np.sort(np.concatenate([certain, drawn]))
            found = retrieval.embedded(
                queries, vectors[kept], qrels, documents=task.items, document_ids=kept, kept=certain
            )
            result = unsample.estimate(found, metrics=list(NAMES))
            for name in NAMES:
                entry = result[name]
                metric = entry.metric
                parts = metric.parts(found.queries, found.places, found.relevance)
                naive = float(parts @ metric.weights(found.ranks, task.items)) / found.size
                ends = *entry.interval(), *entry.interval(population=False)
                rows[name].append((naive, entry.value, *ends))
        seconds = (time.process_time() - start) / draws
        for name in NAMES:
            naive, value, low, high, least, most = np.array(rows[name]).T
            true = truth[name]
            error = np.sqrt(((value / true - 1.0) ** 2).mean())
            held = ((low <= true) & (true <= high)).sum()
            held_these = ((least <= true) & (true <= most)).sum()
            yield (
                f"{share:5.0%}  {name:10}  {true:.4f}  {naive.mean():10.4f}  {error:5.1%}  "
                f"{(high - low).mean() / 2 / true:10.1%}  {held:2}/{draws}  "
                f"{(most - least).mean() / 2 / true:9.1%}  {held_these:2}/{draws}  {seconds:7.1f}"
            )


def strongest(task: retrieval.RetrievalTask, size: int = 100) -> np.ndarray:
    """Return the documents that are among the best of any query by the first dimensions."""
    queries, vectors = task.first(FIRST)
    found = [np.argpartition(-(vectors @ query), size)[:size] for query in queries]
    return np.unique(np.concatenate(found))


def guided(task: retrieval.RetrievalTask, truth: dict[str, float], draws: int) -> Iterator[str]:
    """Yield what evaluations find that ask for few scores, those of the first dimensions apart."""
    given = {"items": task.items, "relevance": task.relevance, "resamples": 0}
    guide = task.first(FIRST)
    yield "scored  metric   truth   error   half-width, holds (of these queries)"
    for share in (0.02, 0.1):
        budget = round(share * task.items * len(task.targets[0]))
        found = [
            unsample.evaluate(
                task.scorer, task.targets, **given, design="guided", guide=guide, budget=budget,
                metrics=list(NAMES[:2]), rng=draw,
            )
            for draw in range(draws)
        ]  # fmt: skip
        for name in NAMES[:2]:
            value = np.array([each[name].value for each in found])
            low, high = np.array([each[name].interval(population=False) for each in found]).T
            true = truth[name]
            held = ((low - 1e-12 <= true) & (true <= high + 1e-12)).sum()
            yield (
                f"{found[0].share:6.2%}  {name:7}  {true:.4f}  "
                f"{np.sqrt(((value / true - 1.0) ** 2).mean()):5.2%}  "
                f"{(high - low).mean() / 2 / true:9.2%}  {held}/{draws}"
            )


def planned(task: retrieval.RetrievalTask, truth: dict[str, float]) -> Iterator[str]:
    """Yield which part of the corpus errors of 10, 5 and 2 % need, by `plan`."""
    full = unsample.evaluate(task.scorer, task.targets, items=task.items, design="exact")
    queries = len(np.unique(task.targets[0]))
    for precision in (0.1, 0.05, 0.02):
        found = unsample.plan(
            items=task.items, users=queries, targets=len(task.targets[0]), metrics="NDCG@10",
            precision=precision, pilot=full.ranks, repeats=40,
        )  # fmt: skip
        yield f"an error of {precision:.0%} of NDCG@10: keep {found.shares['fixed']:.1%}"


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["cuts", "pools", "guided", "plan"])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--world", choices=[*NOISE, "names"], default="mixed")
    parser.add_argument("--shares", type=float, nargs="*", default=SHARES)
    options = parser.parse_args()
    warnings.simplefilter("ignore", unsample.errors.UnsampleWarning)
    if options.world == "names":
        task = names(options.queries)
    else:
        task = make(options.world, options.documents, options.queries)
    truth = truth_of(task)
    print(f"{options.world}: {task}, {truth}", flush=True)
    ways = {
        "cuts": lambda: cuts(task, truth, options.draws, tuple(options.shares)),
        "pools": lambda: cuts(task, truth, options.draws, (0.01,), strongest(task)),
        "guided": lambda: guided(task, truth, options.draws),
        "plan": lambda: planned(task, truth),
    }
    for part in options.parts:
        for row in ways[part]():
            print(row, flush=True)


if __name__ == "__main__":
    main()
