"""What `estimate` and `compare` take: every form of the same ranks gives the same answer."""

import gzip
import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import unsample
from tests.readers import read_models, sql
from unsample import RankCounts
from unsample.counts import ModelCounts, Negatives, Targets
from unsample.errors import InputError, UnsampleWarning

DESIGN = {"items": 400, "sampled": 30}
OPTIONS = {**DESIGN, "metrics": "Recall@50"}
NAMES = ("A", "B")


def _frame(name):
    rng = np.random.default_rng(NAMES.index(name))
    ranks = np.minimum(rng.geometric(0.2 + 0.1 * NAMES.index(name), 300), 31)
    return pd.DataFrame({"user": np.arange(300), "rank": ranks})


FRAMES = {name: _frame(name) for name in NAMES}
TABLE = pd.concat([frame.assign(model=name) for name, frame in FRAMES.items()])


@pytest.fixture
def run(run):
    """Run the command; what JSON says of the call itself, such as the files, is left out."""

    def call(*arguments):
        code, out, err = run(*arguments)
        if not out.startswith("{"):
            return code, out, err
        data = json.loads(out)
        records = [data] if "inputs" in data else data.values()
        assert all(record.pop("inputs")["command"] for record in records)
        return code, json.dumps(data), err

    return call


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, frame in FRAMES.items():
        frame.to_csv(f"{name}.csv", index=False)
    TABLE.to_parquet("both.parquet")
    read_models(TABLE, by="model", **DESIGN).save("both.npz")


#: Forms of one model's ranks, and of both; tests of tables read the other forms of a table.
ONE = {
    "series": lambda frame: frame["rank"],
    "table": lambda frame: frame,
    "counts": lambda frame: RankCounts.from_ranks(frame["rank"], **DESIGN),
    "targets": lambda frame: Targets(frame["rank"].to_numpy(), 400, 30),
    "path": lambda _: "A.csv",
}
BOTH = {
    "dict of arrays": lambda: {name: frame["rank"].to_numpy() for name, frame in FRAMES.items()},
    "dict of frames": lambda: FRAMES,
    "dict of anything": lambda: {"A": "A.csv", "B": pl.from_pandas(FRAMES["B"])},
    "table": lambda: TABLE,
    "path": lambda: "both.parquet",
    "counts of models": lambda: read_models(TABLE, by="model", **DESIGN),
    "saved counts": lambda: "both.npz",
}


@pytest.mark.parametrize("form", ONE)
def test_every_form_of_ranks_gives_the_same_estimate(form, folder):
    expected = unsample.estimate(FRAMES["A"]["rank"].to_numpy(), **OPTIONS).to_dict()
    design = {} if form in {"counts", "targets"} else DESIGN
    found = unsample.estimate(ONE[form](FRAMES["A"]), **design, metrics="Recall@50")
    assert found.to_dict() == expected


# -- what sources say of themselves ---------------------------------------------------------------


@pytest.fixture
def counted(folder):
    """Write the table of counts that the printed query gives for both models."""
    columns = {"user": "user"}
    text = sql(pair=True, by="model", columns=columns, table="given", **DESIGN)
    duckdb.from_df(TABLE).query("given", text).write_parquet("counted.parquet")


#: What knows its design, made of both models: `estimate` and `compare` take each of them.
KNOWING = {
    "table of counts": lambda: "counted.parquet",
    "saved counts": lambda: "both.npz",
    "counts of models": BOTH["counts of models"],
    "dict of counts": lambda: {name: ONE["counts"](FRAMES[name]) for name in NAMES},
    "dict of targets": lambda: {name: ONE["targets"](FRAMES[name]) for name in NAMES},
}
CONTRADICTIONS = [
    ({"items": 4000}, "items must be 400 as in .*, got 4000; leave it out"),
    ({"sampled": 31}, "sampled must be 30 as in .*, got 31; leave it out"),
    ({"items": [400, 500]}, r"items must be 400 as in .*, got \[400, 500\]; leave it out"),
]


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize("form", KNOWING)
def test_what_contradicts_a_source_that_knows_its_design_is_refused(form, counted):
    given = KNOWING[form]()
    table = isinstance(given, str)
    contradictions = CONTRADICTIONS[:2] if table else CONTRADICTIONS  # which take one number
    if form != "table of counts":  # which knows nothing of these two
        contradictions = [
            *contradictions,
            ({"negatives": Negatives(replacement=False)}, "replacement must be True as in"),
            ({"negatives": Negatives(shared=True)}, "shared must be False as in"),
        ]
    for answer, by in ((unsample.estimate, "model" if table else None), (unsample.compare, None)):
        for told, words in contradictions:
            with pytest.raises(InputError, match=words):
                answer(given, by=by, metrics="Recall@50", **told)
        with pytest.raises(InputError, match="users must be left out with"):
            answer(given, by=by, metrics="Recall@50", users=np.arange(300))
        alone = answer(given, by=by, metrics="Recall@50")
        agreed = answer(given, by=by, **OPTIONS)
        both = [found if answer is unsample.compare else found["A"] for found in (alone, agreed)]
        assert both[0].to_dict() == both[1].to_dict()


def test_one_source_that_knows_its_design_is_asked_like_several():
    for form in ("counts", "targets"):
        given = ONE[form](FRAMES["A"])
        for told, words in CONTRADICTIONS:
            with pytest.raises(InputError, match=words):
                unsample.estimate(given, metrics="Recall@50", **told)
        assert unsample.estimate(given, **OPTIONS).rows()


def test_sizes_that_differ_by_target_agree_with_no_single_number():
    given = RankCounts.from_ranks([1, 2], items=[50, 60], sampled=9)
    with pytest.raises(InputError, match=r"items must be 50\.\.60 as in the RankCounts, got 50"):
        unsample.estimate(given, items=50)


def test_targets_of_a_table_of_counts_may_share_their_items(counted):
    with pytest.warns(UnsampleWarning, match="targets share their sampled items"):
        found = unsample.estimate(
            "counted.parquet",
            by="model",
            negatives=unsample.Negatives(shared=True),
            metrics="Recall@50",
        )
    assert found["A"]["Recall@50"].source == "bounds"


def test_results_that_are_compared_know_their_design():
    printed = {name: {"HR@10": f"0.{digit}00"} for name, digit in (("A", 5), ("B", 6))}
    setup = {**DESIGN, "users": 300, "metrics": "Recall@50", "protocol": "unseen"}
    papers = {name: unsample.published(numbers, **setup) for name, numbers in printed.items()}
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2, 50, 400))
    evaluated = {
        name: unsample.evaluate(
            lambda users, items, own=own: own[users, items],
            (np.arange(50), np.arange(50)),
            items=400,
            metrics="Recall@50",
        )
        for name, own in zip(NAMES, scores, strict=True)
    }
    for results in (papers, evaluated):
        assert unsample.compare(results, items=400).models == NAMES
        for told, words in (
            ({"items": 500}, "items must be 400 as in what .* found of A, got 500"),
            ({"sampled": 20}, "sampled must be"),
            ({"users": [1, 2]}, "users must be left out"),
            ({"protocol": "all"}, "protocol must be"),
        ):
            with pytest.raises(InputError, match=words):
                unsample.compare(results, **told)
    assert unsample.compare(papers, **DESIGN, protocol="unseen").models == NAMES


def test_the_command_refuses_what_contradicts_counts(counted, run):
    for file in ("counted.parquet", "both.npz"):
        for verb in (("estimate", file, "--by=model"), ("compare", file)):
            code, _, err = run(*verb, "--items=4000", "-m", "Recall@50")
            assert (code, "--items must be 400 as in the counts of A in" in err) == (2, True)
            code, _, err = run(*verb, "--items=400", "--sampled=30", "-m", "Recall@50")
            assert (code, err) == (0, "")
    words = ("published", "A:30:HR@10=0.5", "B:31:HR@10=0.6", "--items=400", "--users=300")
    code, _, err = run(*words, "--sampled=29")
    assert (code, "--sampled must be left out where all have their own" in err) == (2, True)
    assert run(*words, "--sampled=30")[0] == 0


@pytest.mark.parametrize("form", BOTH)
def test_every_form_of_models_gives_the_same_answers(form, folder):
    given, options = BOTH[form](), dict(OPTIONS)
    counted = isinstance(given, ModelCounts) or form == "saved counts"
    if counted:
        del options["items"], options["sampled"]
    by = None if isinstance(given, dict) or counted else "model"
    estimates = unsample.estimate(given, by=by, **options)
    assert list(estimates) == list(NAMES)
    expected = unsample.compare(FRAMES, **OPTIONS)
    for name in NAMES:
        alone = unsample.estimate(FRAMES[name], **OPTIONS)
        assert estimates[name].to_dict() == alone.to_dict()
    found = unsample.compare(given, by=by, **options)
    assert found.paired
    (one,), (other,) = found.rows(), expected.rows()
    assert one == pytest.approx(other)


def test_the_query_that_the_command_prints_gives_counts_that_it_takes(folder, run):
    """What a warehouse would run, run here."""
    code, out, _ = run(
        "compare", "'both.parquet'", "--items=400", "--sampled=30", "--print-sql=duckdb"
    )
    assert code == 0
    duckdb.sql(out).write_parquet("counts.parquet")
    (found,) = unsample.compare("counts.parquet", metrics="Recall@50").rows()
    (expected,) = unsample.compare(TABLE, **OPTIONS).rows()
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["A.csv", "B.csv"], "one table, got A.csv, B.csv; give a file"),
        (["A=A.csv"], "one table, got A=A.csv; give a file"),
        (["-"], "one table, got standard input; give a file"),
        ([""], "one table, got an empty one; give a file"),
        (["runs"], "got the folder 'runs'; give a pattern, such as 'runs/*.parquet'"),
        (["sets.csv"], "column 'dataset' of 'sets.csv' must hold one data set"),
    ],
)
def test_a_query_for_what_is_no_single_table_is_refused(folder, run, words, said):
    Path("runs").mkdir()
    frame = FRAMES["A"].assign(dataset=["one", *["two"] * (len(FRAMES["A"]) - 1)])
    frame.to_csv("sets.csv", index=False)
    code, out, err = run("estimate", *words, "--items=400", "--sampled=30", "--print-sql=duckdb")
    assert (code, out) == (2, "")
    assert said in err


def _several_targets():
    """Make ranks where users with more targets have worse ones: rows and users give other means."""
    rng = np.random.default_rng(4)
    users = np.repeat(np.arange(200), 1 + np.arange(200) % 5)
    ranks = np.minimum(rng.geometric(0.3 - 0.04 * (users % 5)), 31)
    frame = pl.DataFrame({"m": "A", "query": users, "rank": ranks})
    other = frame.with_columns(m=pl.lit("B"), rank=pl.col("rank").shuffle(seed=4))
    return pl.concat([frame, other])


@pytest.mark.parametrize("design", [(), ("--items=400", "--sampled=30")])
@pytest.mark.parametrize("column", ["user", "query"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_printed_query_counts_users_as_the_direct_call_does(
    run, tmp_path, monkeypatch, design, column, ending
):
    monkeypatch.chdir(tmp_path)
    frame = _several_targets().rename({"query": column})
    if not design:
        frame = frame.with_columns(items=400, sampled=30)
    frame.write_csv("it's.csv") if ending == "csv" else frame.write_parquet("it's.parquet")
    words = ["-m", "NDCG@50,Recall@10", *design]
    words += [] if column == "user" else ["--column", f"user={column}"]
    direct = run("estimate", f"it's.{ending}", *words, "--json")
    _, text, _ = run("estimate", f"it's.{ending}", *words, "--print-sql=duckdb")
    assert "--" not in text
    duckdb.sql(text).write_parquet("counts.parquet")
    assert run("estimate", "counts.parquet", *words[:2], "--json") == direct
    for each in ("estimate", "compare"):
        direct = run(each, f"it's.{ending}", *words, "--by=m", "--json")
        _, text, _ = run(each, f"it's.{ending}", *words, "--by=m", "--print-sql=duckdb")
        duckdb.sql(text).write_parquet("counts.parquet")
        assert run(each, "counts.parquet", *words[:2], "--json", "--by=m") == direct


@pytest.mark.parametrize("names", [("7", "007"), ("1e5", "100000"), ("1.0", "1"), ("a", "NULL")])
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz"])
def test_a_printed_query_reads_names_in_text_as_text(run, tmp_path, monkeypatch, names, ending):
    """An engine that guesses types would take two users for one."""
    monkeypatch.chdir(tmp_path)
    mark = "\t" if ending == "tsv" else ","
    rng = np.random.default_rng(5)
    lines = [f"{name}{mark}{rank}" for name in names for rank in rng.integers(1, 32, 200)]
    text = "\n".join([f"user{mark}rank", *lines]).encode()
    Path(f"table.{ending}").write_bytes(gzip.compress(text) if ending == "csv.gz" else text)
    words = ["--items=400", "--sampled=30", "-m", "Recall@50"]
    direct = run("estimate", f"table.{ending}", *words, "--json")
    assert '"users": 2' in direct[1]
    _, query, _ = run("estimate", f"table.{ending}", *words, "--print-sql=duckdb")
    duckdb.sql(query).write_parquet("counts.parquet")
    assert run("estimate", "counts.parquet", "-m", "Recall@50", "--json") == direct


@pytest.mark.parametrize("quoted", ["{}", "'{}'"])
@pytest.mark.parametrize("pattern", ["of_*.csv", "m*/**/*.parquet"])
def test_a_query_for_a_pattern_of_files_knows_their_columns(
    run, tmp_path, monkeypatch, pattern, quoted
):
    monkeypatch.chdir(tmp_path)
    for (name,), part in _several_targets().rename({"query": "user"}).group_by("m"):
        folder = tmp_path / f"m={name}" / "seed"
        folder.mkdir(parents=True)
        part.drop("m").write_parquet(folder / "part.parquet")
        part.write_csv(f"of_{name}.csv")
    words = ["--by=m", "-m", "NDCG@50,Recall@10", "--json"]
    design = ["--items=400", "--sampled=30"]
    direct = run("estimate", pattern, *words, *design)
    _, text, _ = run("estimate", quoted.format(pattern), *words, *design, "--print-sql=duckdb")
    duckdb.sql(text).write_parquet("counts.parquet")
    assert run("estimate", "counts.parquet", *words) == direct


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("asked", "others"),
    [("a[1].{}", ["a1.{}"]), ("a?.{}", ["ab.{}"]), ("*", [".a.{}", "_a.{}"])],
    ids=["bracket", "question mark", "hidden"],
)
def test_a_printed_query_reads_the_files_of_the_direct_call(
    run, tmp_path, monkeypatch, asked, others, ending
):
    """To DuckDB a name is a pattern, and a pattern names hidden files too."""
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    rng, source = np.random.default_rng(6), f"runs/{asked.format(ending)}"
    mine = [source] if "*" not in source else [f"runs/one.{ending}", f"runs/two.{ending}"]
    for file in [*mine, *(f"runs/{other.format(ending)}" for other in others)]:
        frame = pl.DataFrame({"user": list("abcdefgh"), "rank": rng.integers(1, 32, 8)})
        write = {"csv": frame.write_csv, "jsonl": frame.write_ndjson}
        write.get(ending, frame.write_parquet)(file)
    words = ["--items=400", "--sampled=30", "-m", "Recall@50", "--json"]
    direct = run("estimate", source, *words)
    _, text, _ = run("estimate", source, *words, "--print-sql=duckdb")
    duckdb.sql(text).write_parquet("counts.parquet")
    assert run("estimate", "counts.parquet", *words[2:]) == direct


def test_a_query_for_an_unknown_table_says_what_a_row_counts_as(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = _several_targets()
    connection = duckdb.from_arrow(frame.to_arrow())
    words, found = ("--items=400", "--sampled=30", "--print-sql=duckdb"), {}
    for told in ((), ("--column", "user=query")):
        _, text, _ = run("estimate", "given", *told, *words)
        assert text.startswith("-- Each row counts as a user of its own.") == (not told)
        counts = connection.query("given", text).to_arrow_table()
        found[told] = unsample.estimate(counts, metrics="NDCG@50").to_dict()
        users = {} if not told else {"users": frame["query"]}
        expected = unsample.estimate(frame["rank"], **users, **DESIGN, metrics="NDCG@50")
        assert found[told] == expected.to_dict()
    one, other = found.values()
    assert one != other
    assert "pair" not in run("compare", "given", *words)[1].partition("\n")[0]


def test_runs_in_a_file_are_counted_apart_by_the_printed_query(run, folder):
    both = [TABLE.assign(run=seed, rank=(TABLE["rank"] + seed) % 31 + 1) for seed in (1, 2)]
    pd.concat(both).to_parquet("runs.parquet")
    _, text, _ = run("compare", "runs.parquet", "--items=400", "--sampled=30", "--print-sql=duckdb")
    duckdb.sql(text).write_parquet("counts.parquet")
    words = ("-m", "Recall@50", "--json")
    direct = run("compare", "runs.parquet", "--items=400", "--sampled=30", *words)
    assert '"runs"' in direct[1]
    assert run("compare", "counts.parquet", *words) == direct


def test_files_name_models_by_their_stems_unless_these_are_equal(folder):
    found = unsample.compare(["A.csv", "B.csv"], **OPTIONS)
    assert (found.models, found.matched) == (NAMES, "user")
    with pytest.raises(InputError, match=r"'A\.csv' and 'runs/A\.csv'; name them yourself"):
        unsample.compare(["A.csv", "runs/A.csv"], **OPTIONS)


def test_tables_must_have_the_same_columns(folder):
    for name, frame in FRAMES.items():
        frame[["rank"]].to_csv(f"ranks{name}.csv", index=False)
    assert unsample.compare(["ranksA.csv", "ranksB.csv"], **OPTIONS).matched == "position"
    with pytest.raises(
        InputError, match=r"^'ranksB\.csv' has no column 'user', and 'A\.csv' has it; "
    ):
        unsample.compare(["A.csv", "ranksB.csv"], **OPTIONS)
    with pytest.raises(InputError, match="must hold ranks or scores to be compared, got counts"):
        unsample.compare(["A.csv", "both.npz"], **OPTIONS)


def test_a_table_without_users_is_compared_unpaired():
    with pytest.warns(UnsampleWarning, match="no user is known"):
        assert not unsample.compare(TABLE.drop(columns="user"), **OPTIONS).paired


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: unsample.estimate([1, 2], by="model", **DESIGN), "by must be left out with ranks"),
        (lambda: unsample.estimate(TABLE, users=[1], **DESIGN), "give it a column user"),
        (lambda: unsample.estimate({}, **DESIGN), "got an empty dict"),
        (
            lambda: unsample.compare({"A": FRAMES["A"], "B": FRAMES["B"]["rank"]}, **DESIGN),
            "all be tables, .*, got A: tables, B: arrays; give all of them in one form",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


# -- tables of several data sets ------------------------------------------------------------------

SEVERAL = pd.concat(
    [
        _frame(name).assign(model=name, dataset=data_set, seed=seed)
        for name in NAMES
        for data_set in ("one", "two")
        for seed in (1, 2)
    ]
)


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: unsample.estimate(SEVERAL, **OPTIONS), "by='dataset'"),
        (lambda: unsample.estimate(SEVERAL, by="model", **OPTIONS), "take the rows of one"),
        (lambda: unsample.estimate({"all": SEVERAL}, **OPTIONS), "must hold one data set"),
        (lambda: unsample.compare(SEVERAL, **OPTIONS), "across='dataset'"),
        (
            lambda: unsample.compare(
                {name: SEVERAL[SEVERAL["model"] == name] for name in NAMES}, **OPTIONS
            ),
            "give one table of all, with a column 'model', and across='dataset'",
        ),
        (
            # Each model on a data set of its own: no comparison at all.
            lambda: unsample.compare(
                {name: FRAMES[name].assign(dataset=name) for name in NAMES}, **OPTIONS
            ),
            "must hold one data set, got several, such as 'A' and 'B'",
        ),
        (lambda: unsample.exact(SEVERAL, items=400), "take the rows of one"),
        (
            lambda: unsample.audit(SEVERAL.rename(columns={"rank": "item"}), items=400),
            "take the rows of one",
        ),
    ],
)
def test_data_sets_are_pooled_by_no_verb(call, advice):
    with pytest.raises(InputError, match=r"column 'dataset' of .* must hold one data set") as found:
        call()
    assert advice in str(found.value)


def test_the_advice_on_data_sets_works():
    alone = SEVERAL[(SEVERAL["dataset"] == "one") & (SEVERAL["seed"] == 1)]
    expected = unsample.compare(alone, **OPTIONS).rows()
    first = SEVERAL[SEVERAL["seed"] == 1]
    across = unsample.compare(first, across="dataset", **OPTIONS)
    assert across.comparisons["one"].rows() == expected
    one = unsample.estimate(first[first["model"] == "A"], by="dataset", **OPTIONS)["one"]
    assert one.to_dict() == unsample.estimate(FRAMES["A"], **OPTIONS).to_dict()
    runs = unsample.Read(columns={"run": "seed"})
    found = unsample.compare(SEVERAL, across="dataset", read=runs, **OPTIONS)
    assert found.comparisons["one"].runs == {"A": 2, "B": 2}


def test_the_command_names_its_own_options(folder, run):
    one_seed = SEVERAL[SEVERAL["seed"] == 1]
    one_seed.drop(columns="seed").to_csv("several.csv", index=False)
    design = ("several.csv", "--items=400", "--sampled=30", "-m", "Recall@50")
    code, _, err = run("estimate", *design)
    assert (code, "estimate for each: --by dataset" in err) == (2, True)
    code, _, err = run("compare", *design)
    assert (code, "by the means over them: --across dataset" in err) == (2, True)
    code, _, err = run("compare", *design, "--across=dataset")
    assert (code, err) == (0, "")
