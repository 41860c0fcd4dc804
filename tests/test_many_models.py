"""Comparisons of very many models: which pairs are taken, what is shown, and what it costs."""

from __future__ import annotations

import itertools
import json
import time

import numpy as np
import pytest

import unsample
from unsample.bounds import holm
from unsample.errors import InputError
from unsample.evidence import RankCounts
from unsample.show import as_html

DESIGN = {"items": 2000, "sampled": 99}
pytestmark = pytest.mark.filterwarnings(
    "ignore:the models' users do not match", "ignore:500 models have 124,750 pairs"
)


@pytest.fixture(scope="module")
def crowd():
    """Exact evaluations of 500 models on the same users: cheap, and told apart at both ends."""
    users, items = 150, 120
    rng = np.random.default_rng(0)
    base = np.ceil(items * rng.beta(0.4, 2.5, users)).astype(int).clip(1, items)
    return {
        f"m{place:03d}": RankCounts.from_ranks(
            np.ceil(base * (1 + place / 500)).clip(1, items).astype(int),
            items=items,
            sampled=items - 1,
            replacement=False,
        )
        for place in range(500)
    }


@pytest.fixture(scope="module")
def crowded(crowd):
    return unsample.compare(crowd, metrics="Recall@10")


def test_very_many_models_are_compared_with_the_best(crowded):
    assert crowded.against == "best"
    assert any("124,750 pairs" in text for text in crowded.warnings)
    rows = crowded.standings
    assert len(rows) == 500
    assert [one.value for one in rows] == sorted((one.value for one in rows), reverse=True)
    assert len(crowded.differences) == 499
    assert {one.a for one in crowded.differences} == {rows[0].model}
    assert sum(one.chance for one in rows) == pytest.approx(1.0, abs=0.02)


def test_what_people_read_of_very_many_models_is_short_and_json_is_whole(crowded):
    text = str(crowded)
    assert len(text.splitlines()) < 130
    assert "the highest estimates of 500 models" in text
    assert max(len(line) for line in crowded.sentences()) < 1000
    assert len(json.loads(crowded.to_json())["standings"]) == 500
    assert crowded._repr_html_().count("<tr>") < 130


def test_a_page_of_very_many_models_is_small(crowded):
    pytest.importorskip("jinja2")
    assert len(as_html(crowded)) < 2_000_000


def test_a_baseline_is_compared_with_everyone(crowd):
    few = dict(itertools.islice(crowd.items(), 0, 500, 50))
    result = unsample.compare(few, metrics="Recall@10", against="m250")
    assert {one.a for one in result.differences} == {"m250"}
    assert len(result.differences) == 9
    (sentence,) = result.sentences()
    assert sentence.startswith("Of 9 models, ")
    assert "than m250" in sentence
    assert result.winner("Recall@10") is None
    with pytest.raises(KeyError, match="taken against 'm250'"):
        result.difference("m000", "m050", "Recall@10")


def test_fewer_pairs_give_the_same_differences(crowd):
    few = dict(itertools.islice(crowd.items(), 0, 500, 100))
    options = {"metrics": "Recall@10", "correction": "none"}
    whole = unsample.compare(few, **options)
    for against in ("best", "m200"):
        for one in unsample.compare(few, **options, against=against).differences:
            other = whole.difference(one.a, one.b, "Recall@10")
            assert (one.a, one.b, one.winner) == (other.a, other.b, other.winner)
            for name, value in vars(one).items():
                if isinstance(value, float):
                    assert value == pytest.approx(getattr(other, name), abs=1e-12)


@pytest.mark.parametrize(
    ("names", "against", "message"),
    [
        (("a", "b"), "c", "'all', 'best' or the name of a model, got 'c'"),
        (("model", "b"), "modle", "did you mean model"),
        (("best", "b"), "best", "rename the model"),
    ],
)
def test_pairs_that_cannot_be_meant_are_refused(names, against, message):
    models = {name: [1, 2, 3] for name in names}
    with pytest.raises(InputError, match=message):
        unsample.compare(models, **DESIGN, against=against)


def test_all_pairs_of_thousands_of_models_are_refused_at_once():
    models = {str(place): [1, 2] for place in range(10_000)}
    start = time.perf_counter()
    with pytest.raises(InputError, match="got 'all' for 10,000, which have 49,995,000 pairs"):
        unsample.compare(models, **DESIGN, against="all")
    assert time.perf_counter() - start < 5


def test_the_data_choosing_the_best_costs_the_correction_of_all_pairs(crowd):
    few = dict(itertools.islice(crowd.items(), 0, 500, 100))
    options = {"metrics": "Recall@10", "correction": "bonferroni"}
    for against, family in (("all", 10), ("best", 10), ("m000", 4)):
        found = unsample.compare(few, **options, against=against)
        for pair in found.differences:
            doubt = family * min(pair.chance, 1 - pair.chance)
            assert (pair.winner is not None) == (doubt <= 0.05)


def test_holm_over_a_part_of_a_family_never_beats_holm_over_the_whole():
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.random(12) ** 4
        chosen = sorted(rng.choice(12, size=5, replace=False))
        part = np.array(holm(p[chosen].tolist(), family=12))
        assert (part <= np.minimum(12 * p[chosen], 1.0) + 1e-12).all()
        # A verdict of the part may rest on fewer steps, never on a smaller family.
        assert ((part >= 8 * p[chosen] - 1e-12) | (part == 1.0)).all()
        assert (np.array(holm(p.tolist(), family=12)) >= p).all()


def test_an_excerpt_of_few_models_is_the_comparison_itself(crowd):
    few = dict(itertools.islice(crowd.items(), 3))
    result = unsample.compare(few, metrics="Recall@10")
    assert result.excerpt() is result
