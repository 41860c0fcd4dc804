"""Numbers that others printed: the table is sound, intervals hold them, the page is what is so."""

from __future__ import annotations

import doctest
import importlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import unsample

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "field"


@pytest.fixture(scope="module")
def field():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        yield importlib.import_module("field")


@pytest.fixture(scope="module")
def boards(field):
    return field.read_boards()


def held(pairs):
    return sum(pair.is_held for pair in pairs) / len(pairs)


def test_the_table_holds_numbers_and_their_sources_alone(boards):
    head = (FOLDER / "results.csv").read_text(encoding="utf-8").partition("\n")[0]
    assert head == "source,dataset,model,sampled,full"
    assert {board.source.runs for board in boards} <= {"same", "retrained"}
    assert {board.source.ties for board in boards} <= {"", "for the target"}
    for board in boards:
        names = [model.name for model in board.models]
        assert names
        assert len(names) == len(set(names)), board.source.title
        assert "." in board.source.address, "where the numbers were printed"
        for model in board.models:
            for metric, number in (*model.sampled.items(), *model.full.items()):
                assert unsample.metrics.parse(metric)
                assert 0 < float(number) < 1, (model.name, metric)
            for metric in model.sampled.keys() & model.full.keys():
                assert float(model.full[metric]) < float(model.sampled[metric])


def test_known_data_sets_are_those_of_the_corpus(boards):
    corpus = {each.dataset for each in unsample.lab.corpus.load_corpus()}
    assert {board.source.prior for board in boards} <= corpus | {""}


def test_intervals_hold_what_full_rankings_gave(boards):
    pairs = [pair for board in boards for pair in board.pairs]
    assert held([pair for pair in pairs if not pair.source.ties]) > 0.9
    assert held(pairs) > 0.85


def test_what_the_page_says_of_misses(boards):
    pairs = [pair for board in boards for pair in board.pairs]
    same = [pair for pair in pairs if pair.source.runs == "same"]
    assert all(pair.is_held for pair in same if not pair.source.ties)
    ties = [pair for pair in same if pair.source.ties and not pair.is_held]
    assert {pair.model for pair in ties} == {"NCF", "CMF", "EMCDR", "PTUPCDR"}
    assert all(pair.full < pair.low for pair in ties)
    toys = [pair for pair in pairs if pair.source.title == "S3-Rec, Toys"]
    above = {pair.model for pair in toys if pair.full > pair.high}
    assert above == {"S3-Rec"}
    assert all(pair.full > pair.high for pair in toys if pair.model == "S3-Rec")


def test_a_wrong_catalogue_is_not_held(field, boards):
    board = boards[4]
    wrong = replace(board.source, items=3 * board.source.items)
    assert held(field.Board(wrong, board.models).pairs) < 0.3


def test_a_new_result_is_a_line(field, tmp_path):
    for name in ("sources.csv", "results.csv"):
        shutil.copy(FOLDER / name, tmp_path)
    with (tmp_path / "results.csv").open("a", encoding="utf-8") as file:
        file.write("feedforge,ML-1M,Random,HR@10=0.099,HR@10=0.003\n")
    (feedforge,) = [
        board for board in field.read_boards(tmp_path) if board.source.source == "feedforge"
    ]
    assert "| feedforge, ML-1M | 2 | 3 |" in field.table_of_sources([feedforge])
    assert "feedforge, ML-1M, by NDCG@10" not in field.places_of_boards([feedforge])
    with (tmp_path / "results.csv").open("a", encoding="utf-8") as file:
        file.write("nobody,ML-1M,Random,HR@10=0.099,HR@10=0.003\n")
    with pytest.raises(SystemExit, match=r"sources\.csv has no line for nobody on ML-1M"):
        field.read_boards(tmp_path)


def test_the_page_is_compared_with_what_is_found(field, boards, tmp_path, monkeypatch, capsys):
    page = tmp_path / "field.md"
    shutil.copy(field.PAGE, page)
    monkeypatch.setattr(field, "PAGE", page)
    monkeypatch.setattr(field, "PICTURE", tmp_path / "field.svg")
    monkeypatch.setattr(field, "read_boards", lambda: boards)
    assert field.main(check=True) == 1, "there is no picture yet"
    assert field.main(check=False) == 0
    assert field.main(check=True) == 0
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("| **all** | ", "| **all** | 1"), encoding="utf-8")
    capsys.readouterr()
    assert field.main(check=True) == 1
    assert "+| **all** | 88 |" in capsys.readouterr().out
    page.write_text(text.replace("table: field-misses", "table: other"), encoding="utf-8")
    with pytest.raises(SystemExit, match="has no place for field-misses"):
        field.main(check=True)


@pytest.mark.parametrize("name", ["field", "page_tables"])
def test_examples_of_the_tools(name, field):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted
    assert not found.failed
