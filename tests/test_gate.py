"""A gate for pipelines: it fails where a new model is surely worse, and says why."""

import json

import numpy as np
import pytest

import unsample
from unsample.answers import Gate
from unsample.errors import UnsampleWarning

DESIGN = {"items": 1000, "sampled": 99, "candidates": "unseen"}
WORDS = ["--items", 1000, "--sampled", 99, "--candidates", "unseen"]


def _ranks(power, users=600, seed=0):
    rng = np.random.default_rng(seed)
    return np.ceil(100 * rng.random(users) ** power).astype(int)


MODELS = {"base": _ranks(4.0), "same": _ranks(4.0, seed=1), "worse": _ranks(1.5)}


@pytest.fixture(scope="module")
def result():
    return unsample.compare(MODELS, metrics=["NDCG@10", "Recall@100"], **DESIGN)


def test_it_fails_where_the_chance_passes_the_level(result):
    gate = result.gate("NDCG@10", baseline="base")
    assert gate.failed
    assert gate.worse == ("worse",)
    for model in ("same", "worse"):
        pair = result.difference(model, "base", "NDCG@10")
        assert gate.chances[model] == pytest.approx(1 - pair.chance, abs=1e-12)
        assert (pair.winner == "base") == (model in gate.worse)
    assert str(gate) == (
        "Gate failed: chance of a lower NDCG@10 than base's: worse more than 99 %; the gate closes "
        "at 95 % for 2 models together."
    )


def test_a_margin_is_a_share_of_the_baseline(result):
    base = result.estimates["base"]["Recall@100"].value
    for margin in (0.0, 0.01, 0.1, 0.5):
        gate = result.gate("Recall@100", baseline="base", margin=margin)
        pair = result.difference("worse", "base", "Recall@100")
        drawn = pair.sign * _draws(pair.law)
        assert gate.chances["worse"] == pytest.approx((drawn < -margin * base).mean(), abs=0.01)
    close = result.gate("Recall@100", baseline="base", margin=0.9)
    assert not close.failed
    assert str(close).startswith("Gate passed: chance of a lower Recall@100 than base's by more")


def _draws(law):
    """Return the difference, drawn from the sum of its law's parts."""
    rng, total = np.random.default_rng(0), law.prior * (5.0 / 3.0) + law.users
    logs = rng.multivariate_normal(law.mean, total, size=100_000)
    return np.exp(logs[:, 0]) - np.exp(logs[:, 1])


def test_bounds_that_are_apart_fail_too():
    few = {"base": np.ones(45, dtype=int), "new": np.full(45, 100)}
    with pytest.warns(UnsampleWarning, match="45 users are few"):
        found = unsample.compare(few, metrics="Recall@500", **DESIGN)
    gate = found.gate("Recall@500", baseline="base")
    assert gate.chances == {"new": None}
    assert gate.failed == (found.winner("Recall@500") == "base") == True  # noqa: E712
    assert "new known by bounds alone" in str(gate)


def test_a_chance_is_never_rounded_up_to_the_level():
    about = {"metric": "HR@1", "baseline": "A", "margin": 0.0, "level": 0.95, "worse": ()}
    assert "B 94.9 %; the gate closes at 95 %." in str(Gate(chances={"B": 0.9499}, **about))


@pytest.fixture
def files(tmp_path):
    found = {}
    for name, ranks in MODELS.items():
        path = found[name] = tmp_path / f"{name}.csv"
        path.write_text("rank\n" + "\n".join(map(str, ranks)), encoding="utf-8")
    return found


def test_the_command_exits_with_one_where_it_fails(files, run):
    gate = ["--baseline", "base", "--fail-if-worse", "NDCG@10"]
    code, out, err = run("compare", files["base"], files["worse"], *WORDS, *gate)
    assert (code, err) == (1, "")
    assert "Gate failed: chance of a lower NDCG@10 than base's: worse more than 99 %" in out
    more = [*gate, "--margin", 0.01, "--json", "-m", "Recall@100"]
    code, out, err = run("compare", files["base"], files["same"], *WORDS, *more)
    assert code == 0, err
    data = json.loads(out)
    assert [row["metric"] for row in data["standings"]] == ["Recall@100"] * 2 + ["NDCG@10"] * 2
    assert data["gate"]["failed"] is False
    assert data["gate"]["margin"] == 0.01
    assert data["gate"]["reason"] in data["sentences"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fail-if-worse", "NDCG@10"], "must be given together"),
        (["--baseline", "base"], "got --baseline base"),
        (["--margin", "0.1"], "--margin must be left out without"),
        (["--baseline", "nobody", "--fail-if-worse", "NDCG@10"], "got 'nobody'"),
        (["--baseline", "base", "--fail-if-worse", "NDGC@10"], "NDGC@10"),
        (["--baseline", "base", "--fail-if-worse", "NDCG@10", "--margin", "2"], "margin must be"),
    ],
)
def test_bad_input_exits_with_two(files, run, words, message):
    code, out, err = run("compare", files["base"], files["worse"], *WORDS, *words)
    assert (code, out) == (2, "")
    assert message in err
