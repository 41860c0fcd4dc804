"""The report of a reproduction, on made-up results of the paper's shape."""

# ruff: noqa: RUF001  (dashes and minus signs are what these tests look for)

import base64
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from unsample.errors import FileError, MissingExtraError
from unsample.lab.paper import SCHEMA, Reproduction, _report, _report_tables
from unsample.lab.paper._report import report_html, wide_latex, write_report
from unsample.lab.paper._report_tables import accuracy_sheet, winners_sheet
from unsample.pages import as_markdown

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

DATASETS = {"ml-1m": 0.035, "citeulike-a": 0.06, "pinterest-20": 0.05, "yelp": 0.012}
RECOMMENDERS = ("EASE", "MultiVAE")
#: Relative bias and spread that make the fakes look like the paper's.
ESTIMATORS = {
    "CLS": (0.55, 0.04),
    "BV 0.1": (0.08, 0.06),
    "BV 0.01": (0.05, 0.15),
    "MLE": (0.02, 0.2),
    "WMLE": (0.04, 0.21),
    "MES": (0.03, 0.21),
}
METRICS = {"Recall": 1.0, "NDCG": 0.5, "AP": 0.35}
EVIL = "<script>alert('x')</script>"


EMPTY = Reproduction((), (), (), (), (), (), {})


def accuracy_markdown(results):
    return as_markdown(accuracy_sheet(results.accuracy))


def winners_markdown(results):
    return as_markdown(winners_sheet(results.winners))


def accuracy_latex(results):
    return wide_latex(accuracy_sheet(results.accuracy))


def winners_latex(results):
    return wide_latex(winners_sheet(results.winners))


def fake_results(
    datasets=("ml-1m",), recommenders=RECOMMENDERS, candidates=("all", "unseen"), seed=0
):
    rng = np.random.default_rng(seed)
    cases = [(d, p, r) for d in datasets for p in candidates for r in recommenders]
    return Reproduction(
        statistics=tuple(
            _statistics(name, source) for name in datasets for source in ("paper", "here")
        ),
        accuracy=tuple(row for case in cases for row in _accuracy(*case, rng)),
        winners=tuple(row for d in datasets for p in candidates for row in _winners(d, p, rng)),
        distributions=tuple(
            row
            for d, p, r in cases
            for size in ((99, 499) if r == recommenders[0] else (99,))
            for row in _distributions(d, p, r, size, rng)
        ),
        sweep=tuple(row for case in cases for row in _sweep(*case, rng)),
        claims=_claims(),
        settings=_settings(datasets, candidates),
    )


def _row(table, *values):
    return dict(zip(SCHEMA[table], values, strict=True))


def _statistics(dataset, source):
    note = "incomplete here: the published file lacks users" if source == "here" else None
    return _row("statistics", dataset, source, 6040, 3706, 1_000_209, 0.9553, note)


def _accuracy(dataset, candidates, recommender, rng):
    level = DATASETS.get(dataset, 0.03) * (3 if candidates == "unseen" else 1)
    base = level * rng.uniform(0.7, 1.2)
    for metric, factor in METRICS.items():
        exact = base * factor
        paper_exact = exact * rng.normal(1.05, 0.05)
        for name, (bias, spread) in ESTIMATORS.items():
            mean = exact * (1 + bias * rng.normal(1, 0.3))
            std = exact * spread * rng.normal(1, 0.05)
            errors = (exact, mean, std, mean - exact, float(np.hypot(mean - exact, std)))
            paper_mean = paper_exact * (1 + bias * rng.normal(1, 0.3))
            paper = (paper_exact, paper_mean, paper_exact * spread)
            paper = paper if candidates == "all" else (None, None, None)
            key = (dataset, candidates, recommender, metric, 10, 99, name, name.lower(), 100)
            yield _row("accuracy", *key, *errors, *paper)


def _winners(dataset, candidates, rng):
    for k, metric, estimator in product((1, 5, 10, 20), METRICS, ESTIMATORS):
        correct, paper = (int(count) for count in rng.binomial(100, rng.uniform(0.3, 0.9), 2))
        # The paper's winner tables lack CLS on some data sets.
        paper = paper if candidates == "all" and estimator != "CLS" else None
        key = (dataset, candidates, metric, k, estimator, 100, "EASE")
        yield _row("winners", *key, correct, paper)


def _distributions(dataset, candidates, recommender, sampled, rng):
    ranks = np.arange(1, 201)
    power = -0.9 if candidates == "unseen" else -0.1
    true = 0.004 * (ranks + 4.0) ** power * (3 if candidates == "unseen" else 1)
    curves = {"exact": rng.poisson(6040 * true) / 6040}
    for index, name in enumerate(ESTIMATORS):
        if name != "CLS":
            tilt = 1 + 0.1 * (index - 3) * np.exp(-ranks / 60) * 99 / sampled
            curves[name] = true * tilt
    for name, pmf in curves.items():
        key = (dataset, candidates, recommender, sampled, name)
        for rank, mass, total in zip(ranks, pmf, np.cumsum(pmf), strict=True):
            yield _row("distributions", *key, int(rank), float(mass), float(total))


def _sweep(dataset, candidates, recommender, rng):
    for (metric, factor), sampled in product(METRICS.items(), (49, 99, 199, 499, 999)):
        exact = DATASETS.get(dataset, 0.03) * factor
        for name, (bias, spread) in ESTIMATORS.items():
            shrink = (99 / sampled) ** 0.7
            off, std = exact * bias * shrink * rng.normal(1, 0.2), exact * spread * shrink
            key = (dataset, candidates, recommender, metric, 10, sampled, name, 100)
            yield _row("sweep", *key, exact, exact + off, std, off, float(np.hypot(off, std)))


def _claims():
    where, detail = "Section 6, Table 2", "12 of 15 lines on ml-1m; 2.1 % against 7.9 %."
    return tuple(
        _row("claims", name, text, where, by_bias, by_rmse, detail)
        for name, text, by_bias, by_rmse in (
            ("mle-mes-accurate", "MLE and MES are the most accurate", True, False),
            ("cls-worst", "CLS is the worst estimator", True, True),
            ("wmle-winners", "WMLE picks winners best", False, False),
            ("more-samples", "As the sample grows, accuracy grows", True, None),
        )
    )


def _settings(datasets, candidates):
    return {
        "rng": 0,
        "repeats": 100,
        "sampled": 99,
        "datasets": list(datasets),
        "candidates": list(candidates),
        "versions": {"unsample": "0.1.0", "numpy": "2.1.0", "python": "3.11.7"},
        "deviations": [
            {"id": "units", "text": "The paper's values are metrics times 1000."},
            {"id": "em", "text": "MLE stops after 100 iterations, as the tables do."},
        ],
        "seconds": 17.23,
    }


class Page(HTMLParser):
    """What a page holds: its tags in order, whether they nest, links, and texts of cells."""

    VOID = frozenset({"meta", "link", "br", "img", "input", "hr"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.cells = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data


@pytest.fixture(scope="module")
def results():
    return fake_results()


@pytest.fixture(scope="module")
def html(results):
    return report_html(results)


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


@pytest.fixture
def without_figures(monkeypatch):
    for name in ("distribution", "error", "sample_size", "sweep"):
        monkeypatch.setattr(_report, f"{name}_figures", lambda results: ())


def test_tags_nest_and_identities_are_unique(page):
    assert page.open == []
    identities = [attrs["id"] for _, attrs in page.attributes if "id" in attrs]
    assert len(identities) == len(set(identities))


def test_links_stay_inside_the_page(page):
    identities = {attrs.get("id") for _, attrs in page.attributes}
    links = [attrs["href"] for tag, attrs in page.attributes if tag == "a"]
    assert len(links) > 9
    assert all(link.startswith("#") and link[1:] in identities for link in links)


def test_nothing_is_fetched_from_elsewhere(html, page):
    assert not {"script", "link", "iframe", "object", "use", "image", "svg"} & set(page.tags)
    assert not any({"srcset", "style", "data"} & set(attrs) for _, attrs in page.attributes)
    sources = [attrs["src"] for _, attrs in page.attributes if "src" in attrs]
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    policy = next(attrs["content"] for tag, attrs in page.attributes if "http-equiv" in attrs)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "img-src data:;" in policy
    assert "url(" not in html
    assert "@import" not in html
    assert "http:" not in html
    assert "https" not in html


def test_tables_have_captions_and_regions_that_scroll_have_names(page):
    assert page.tags.count("caption") == page.tags.count("table")
    assert all("scope" in attrs for tag, attrs in page.attributes if tag == "th")
    regions = [attrs for _, attrs in page.attributes if attrs.get("class") == "scroll"]
    assert len(regions) == page.tags.count("table") + page.tags.count("img")
    assert all("aria-label" in r or "aria-labelledby" in r for r in regions)
    assert all(r["tabindex"] == "0" for r in regions)


def test_figures_are_described_follow_the_page_and_differ_beyond_colour(page):
    images = [attrs for tag, attrs in page.attributes if tag == "img"]
    assert len(images) == 8
    assert all("EASE" in image["alt"] or "MLE" in image["alt"] for image in images)
    dashes = set()
    for image in images:
        svg = base64.b64decode(image["src"].partition(",")[2]).decode()
        ET.fromstring(svg)  # it is whole
        assert "prefers-color-scheme:dark" in svg
        assert not re.search(r"(fill|stroke): #[1-9a-f]", svg.partition("</style>")[2])
        dashes |= set(re.findall(r"stroke-dasharray: [\d., ]+", svg))
    assert len(dashes) >= 4


def test_every_section_is_there_in_a_style_for_dark_pages_phones_and_paper(html, page):
    identities = {attrs.get("id") for _, attrs in page.attributes}
    sections = "summary datasets accuracy winners figures claims deviations settings again"
    assert set(sections.split()) <= identities
    for words in ("prefers-color-scheme: dark", "@media print", 'name="viewport"'):
        assert words in html


def test_numbers_stand_in_the_cells_times_a_thousand(results, page):
    cells = " ".join(page.cells)
    for row in results.accuracy[::7]:
        assert f"{1000 * row['mean']:.2f} ± {1000 * row['std']:.2f}" in cells
        assert f"RMSE {1000 * row['rmse']:.2f}" in cells
        if row["paper_mean"] is not None:
            assert f"{1000 * row['paper_mean']:.2f} ± {1000 * row['paper_std']:.2f}" in cells
    assert "1,000,209" in cells
    assert "95.53 %" in cells


def test_all_candidates_are_shown_and_the_summary_counts(html):
    assert "among all items, as in the paper (training items kept)" in html
    assert "among unseen items (training items excluded)" in html
    assert re.search(r"\d+ of 36 means agree", html)
    assert "3 of 4 hold by bias and 1 of 3 by root mean square error" in html
    for verdict in ("By bias: ✓ holds", "By RMSE: ✗ does not hold", "By RMSE: – not checked"):
        assert verdict in html


@pytest.mark.usefixtures("without_figures")
def test_missing_paper_values_are_dashes(results):
    row = {**results.accuracy[0], "paper_mean": None, "paper_std": None}
    partly = replace(results, accuracy=(row, *results.accuracy[1:]))
    assert "<td>–</td>" in report_html(partly)
    lines = accuracy_markdown(partly).splitlines()
    first = next(line for line in lines if "| paper |" in line)
    assert first.split("|")[5].strip() == "–"
    assert "–" in Page(report_html(replace(results, accuracy=results.accuracy[1:]))).cells


@pytest.mark.usefixtures("without_figures")
def test_tables_the_paper_lacks_show_ours_alone():
    text = report_html(fake_results(candidates=("unseen",)))
    assert 'class="source">paper<' not in text.partition('id="accuracy"')[2]
    assert "the paper has no such table" in text
    assert "no number to compare" in text


def test_an_empty_run_is_still_a_page():
    page = Page(report_html(EMPTY))
    assert page.open == []
    assert "img" not in page.tags
    assert accuracy_markdown(EMPTY) == "\n"


def test_nan_is_a_dash_and_does_not_break_figures():
    results = fake_results(recommenders=("EASE",), candidates=("all",))
    broken = tuple({**row, "mean": float("nan"), "bias": None} for row in results.accuracy)
    nothing = tuple({**row, "pmf": None} for row in results.distributions)
    text = report_html(replace(results, accuracy=broken, distributions=nothing))
    assert "nan" not in text.partition("</style>")[2].casefold()


def _evil(results):
    def spoil(rows):
        return tuple({k: EVIL if isinstance(v, str) else v for k, v in row.items()} for row in rows)

    return Reproduction(
        **{table: spoil(getattr(results, table)) for table in SCHEMA},
        settings={
            "datasets": [EVIL],
            "versions": {EVIL: EVIL},
            "deviations": [{"id": EVIL, "text": EVIL}],
            EVIL: EVIL,
        },
    )


def test_scripts_in_names_are_harmless():
    small = fake_results(recommenders=("EASE",), candidates=("all",))
    text = report_html(_evil(small))
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert Page(text).open == []
    page = Page(report_html(fake_results(recommenders=('" onload="x',), candidates=("all",))))
    assert "script" not in page.tags
    assert not any("onload" in attrs for _, attrs in page.attributes)
    markdown = accuracy_markdown(_evil(small)) + winners_markdown(_evil(small))
    assert "<script" not in markdown


@pytest.mark.parametrize("write", [accuracy_markdown, winners_markdown])
def test_markdown_tables_are_rectangular(write, results):
    awkward = tuple({**row, "recommender": "a|b`*_\nc"} for row in results.accuracy)
    winners = tuple({**row, "true_winner": "a|b`*_\nc"} for row in results.winners)
    text = write(replace(results, accuracy=awkward, winners=winners))
    assert r"a\|b\`\*\_ c" in text
    for table in re.split(r"^### .*$", text, flags=re.MULTILINE)[1:]:
        lines = table.strip().splitlines()
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(widths) == 1
        assert re.fullmatch(r"\|( ---:? \|)+", lines[1])


@pytest.mark.parametrize("write", [accuracy_latex, winners_latex])
def test_latex_is_balanced_and_escaped(write, results):
    awkward = tuple({**row, "recommender": r"a&b_%$#{\x}~^"} for row in results.accuracy)
    winners = tuple({**row, "true_winner": r"a&b_%$#{\x}~^"} for row in results.winners)
    text = write(replace(results, accuracy=awkward, winners=winners))
    assert r"a\&b\_\%\$\#\{\textbackslash{}x\}\textasciitilde{}\textasciicircum{}" in text
    for name in ("table*", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") > 0
    for rule in ("toprule", "bottomrule"):
        assert text.count(rf"\{rule}") == text.count(r"\begin{tabular}")
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    rows = [line for line in text.splitlines() if line.endswith(r"\\") and " & " in line]
    assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) == 1
    assert not set("±−–×≠") & set(text)


def test_latex_and_markdown_hold_the_numbers(results):
    row, winner = results.accuracy[0], results.winners[1]
    mean, std = f"{1000 * row['mean']:.2f}", f"{1000 * row['std']:.2f}"
    assert f"{mean} ± {std}" in accuracy_markdown(results)
    assert rf"{mean} $\pm$ {std}" in accuracy_latex(results)
    for text in (winners_latex(results), winners_markdown(results)):
        assert f"{winner['paper_correct']}, {winner['correct']}" in text


def test_lines_stand_metric_by_metric(results):
    (table, *_) = _report_tables.accuracy_tables(results.accuracy)
    metrics = [line.metric for line in table.lines]
    assert metrics == sorted(metrics, key=["Recall@10", "NDCG@10", "AP@10"].index)


def test_same_results_give_the_same_bytes_and_not_too_many(html):
    assert report_html(fake_results()) == html
    assert len(html.encode()) < 1_000_000


@pytest.mark.usefixtures("without_figures")
def test_command_to_run_again_is_quoted(results):
    settings = {**results.settings, "datasets": ["ml-1m", "a b; rm"]}
    text = report_html(replace(results, settings=settings))
    assert "--dataset &#39;a b; rm&#39; --candidates all" in text


@pytest.mark.usefixtures("without_figures")
def test_estimators_with_their_methods_are_settings_too(results):
    pairs = [["BV 0.1", "bv"], ["MLE", "mle"]]
    settings = {"estimators": pairs, "recommenders": ["ease"], "retrain": True}
    text = report_html(replace(results, settings=settings))
    assert "BV 0.1 = bv, MLE = mle" in text
    command = "--recommender ease --estimator &#39;BV 0.1&#39; --estimator MLE --retrain --out"
    assert command in text
    assert ">yes<" in text


@pytest.mark.usefixtures("without_figures")
def test_a_report_stands_beside_the_results(results, tmp_path, monkeypatch):
    with pytest.raises(FileError, match="must hold a finished run"):
        write_report(tmp_path)
    monkeypatch.setattr(_report, "load_results", lambda folder: results)
    path = write_report(tmp_path)
    assert path.read_text(encoding="utf-8") == report_html(results)
    tables = {"accuracy.md", "accuracy.tex", "winners.md", "winners.tex"}
    assert {entry.name for entry in tmp_path.iterdir()} == tables | {"report.html"}


@pytest.mark.usefixtures("without_figures")
def test_without_jinja_the_install_line_is_named(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'unsample\[report\]'"):
        report_html(results)


@pytest.mark.parametrize(
    ("ours", "level", "marker"), [(10.5, "same", "="), (12.0, "near", "~"), (14.0, "far", "≠")]
)
def test_deviation_is_in_standard_deviations(ours, level, marker):
    row = {"mean": ours, "paper_mean": 10.0, "std": 1.0, "paper_std": 1.0}
    deviation = _report_tables.accuracy_deviation(row)
    assert (deviation.level, deviation.marker) == (level, marker)
    assert deviation.size == pytest.approx(ours - 10)


def test_deviation_needs_both_numbers_and_a_spread():
    row = {"mean": 1.0, "paper_mean": 1.0, "std": 0.0, "paper_std": None}
    assert _report_tables.accuracy_deviation(row).level == ""
    assert _report_tables.accuracy_deviation({**row, "paper_mean": None}).level == ""


def test_relative_errors_are_medians():
    rows = [{"exact": exact, "rmse": 0.1} for exact in (1.0, 0.5, 1e-9, 0.0)]
    assert _report_tables.median_relative(rows, "rmse") == pytest.approx(0.2)
    assert _report_tables.median_relative([], "rmse") is None


def test_failing_claims_are_linked_from_the_summary(html):
    summary = html.partition('id="summary"')[2].partition("</section>")[0]
    assert '<a href="#claim-3">WMLE picks winners best</a>' in summary
    assert "not by bias or RMSE" in summary
    assert "CLS is the worst" not in summary


def test_winner_deviation_is_a_two_sample_score():
    row = {"correct": 50, "paper_correct": 60, "repeats": 100}
    assert _report_tables.winner_deviation(row).size == pytest.approx(0.1 / 0.0704, rel=0.02)
    assert _report_tables.winner_deviation({**row, "correct": 60}).size == 0
    certain = {"correct": 100, "paper_correct": 100, "repeats": 100}
    assert _report_tables.winner_deviation(certain).level == "same"
