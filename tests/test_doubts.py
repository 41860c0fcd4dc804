"""What is hardly meant is said, and what is nearly right is understood, by the command too."""

import json
import re
import warnings

import numpy as np
import pytest

import unsample
from unsample.errors import MetricError, UnsampleWarning
from unsample.metrics import parse, parse_all

#: Ranks with which nothing is wrong, whatever the design.
RANKS = [1, 4, 10]
UNIFORM = np.random.default_rng(0).integers(1, 101, 3000)
#: Ranks, options, and what a note says; None: nothing is wrong.
CASES = {
    "more draws than items": (
        UNIFORM, {"items": 50, "sampled": 99}, "must be less than items .* got 99 draws from 50"
    ),
    "K beyond the catalogue": (
        [1, 4, 10], {"items": 50, "sampled": 9, "metrics": "NDCG@51"},
        r"K must be at most items = 50 .* got NDCG@51",
    ),
    "K at the end": ([1, 4, 10], {"items": 50, "sampled": 9, "metrics": "NDCG@50"}, None),
}  # fmt: skip


@pytest.mark.filterwarnings("always::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize("form", ["python", "models", "command"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_hardly_meant_is_said_once(case, form, run, tmp_path):
    ranks, options, wanted = CASES[case]
    options = {"metrics": "Recall@5", **options}
    if form == "command":
        path = tmp_path / "ranks.csv"
        path.write_text("\n".join(["rank", *map(str, ranks)]))
        code, _, errors = run("estimate", path, *(f"--{k}={v}" for k, v in options.items()))
        assert code == 0
        said = [each.strip() for each in errors.split("warning: ")]
    else:
        with warnings.catch_warnings(record=True) as caught:
            if form == "python":
                unsample.estimate(ranks, **options)
            else:
                unsample.compare({"a": ranks, "b": RANKS}, **options)
        said = [str(each.message) for each in caught]
    ours = [text for text in said if "must be" in text]
    assert len(ours) == (wanted is not None)
    assert wanted is None or re.search(wanted, ours[0])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("ndcg10", "NDCG@10"), ("ndcg_at_10", "NDCG@10"), ("ndgc@10", "NDCG@10"),
        ("R@10", "Recall@10"), ("recall@k=10", "Recall@10"), ("Recall top 20", "Recall@20"),
        ("hit_rate@5", "HitRate@5"), ("Hit Ratio@5", "HR@5"), ("MAP10", "MAP@10"), ("p10", "P@10"),
        ("mean average precision@10", "MAP@10"), ("ndcg@", "NDCG"),
        ("NDCG(gain=ex)@5", "NDCG(gain=exp)"),
    ],
)  # fmt: skip
def test_suggestions_make_sense(written, meant):
    with pytest.raises(MetricError, match=re.escape(f"got {written!r}; did you mean {meant}?")):
        parse(written)


@pytest.mark.filterwarnings("ignore:.* users are few")
def test_metrics_may_be_listed_with_commas(run, tmp_path):
    names = ["NDCG@5", "AP(norm=min)@3", "AUC"]
    result = unsample.estimate(
        [1, 2, 10], items=50, sampled=9, metrics="NDCG@5, AP(norm=min)@3,AUC"
    )
    assert [metric.name for metric in result.metrics] == names
    (tmp_path / "ranks.csv").write_text("rank\n1\n2\n10\n")
    listed = ("-m", "NDCG@5,AP(norm=min)@3", "-m", "AUC")
    options = ("--items=50", "--sampled=9", "--json", *listed)
    code, out, _ = run("estimate", tmp_path / "ranks.csv", *options)
    assert (code, [row["metric"] for row in json.loads(out)["estimates"]]) == (0, names)
    with pytest.raises(MetricError, match="got ''"):
        parse_all("NDCG@5,")
    with pytest.raises(MetricError, match=r"got 'F1@10'$"):
        parse("F1@10")


@pytest.mark.filterwarnings("ignore:.* users are few")
@pytest.mark.parametrize(("ties", "placed"), [("random", "at random"), ("optimistic", "by ties=")])
def test_half_ranks_are_ties_and_that_is_said(ties, placed):
    read, options = unsample.Read(ties=ties), {"items": 50, "sampled": 9, "metrics": "AUC"}
    with pytest.warns(UnsampleWarning, match=rf"got half ranks \(2 times\), .* {placed}"):
        unsample.estimate([1.0, 2.5, 4.0, 2.5], read=read, **options)
