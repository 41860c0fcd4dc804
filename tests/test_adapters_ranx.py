"""ranx itself; run in an environment of its own by tools/try_adapters.py."""

import numpy as np
import pytest

from tests.libraries import need_library
from unsample.adapters import ranx
from unsample.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own warnings


def test_ranks_agree_with_the_metrics_of_ranx():
    need_library("ranx")
    from ranx import Qrels, Run
    from ranx import evaluate as evaluate_run

    rng = np.random.default_rng(0)
    run = {
        f"q{q}": {f"d{d}": float(rng.normal()) for d in rng.choice(500, 21, replace=False)}
        for q in range(100)
    }
    qrels = {query: {next(iter(docs)): 1} for query, docs in run.items()}
    found = ranx.targets(Run(run), Qrels(qrels), items=500, sampled=20)
    plain = ranx.targets(run, qrels, items=500, sampled=20)
    assert np.array_equal(found.ranks, plain.ranks)
    assert found.users.tolist() == sorted(run)
    wanted = evaluate_run(Qrels(qrels), Run(run), ["mrr", "hit_rate@5"])
    assert (1 / found.ranks).mean() == pytest.approx(wanted["mrr"])
    assert (found.ranks <= 5).mean() == pytest.approx(wanted["hit_rate@5"])
    with pytest.raises(InputError, match="run must hold every target"):
        ranx.targets(Run({"q0": run["q0"]}), Qrels(qrels), items=500)
