"""Writing a report beside the results it shows."""

from __future__ import annotations

from pathlib import Path

from unsample._files import write_atomically
from unsample.errors import FileError
from unsample.lab.report._html import reproduction_html
from unsample.lab.report._latex import accuracy_latex, winners_latex
from unsample.lab.report._markdown import accuracy_markdown, winners_markdown
from unsample.lab.report._results import Results

__all__ = ["REPORT_NAME", "write_report", "write_results"]

REPORT_NAME = "report.html"


def write_report(folder: str | Path) -> Path:
    """Write the report of a results folder into it, and return the path of the HTML page.

    Beside ``report.html`` stand ``accuracy.md``, ``accuracy.tex``, ``winners.md`` and
    ``winners.tex``.
    """
    # The report reads results, whoever made them; only this door knows where they are loaded.
    from unsample.lab.experiment import load_results

    return write_results(load_results(folder), folder)


def write_results(results: Results, folder: str | Path) -> Path:
    """Write the page and the tables of loaded results into a folder that exists."""
    place = Path(folder)
    if not place.is_dir():
        raise FileError(f"folder must be a folder that exists, got {str(place)!r}; make it first")
    texts = {
        "accuracy.md": accuracy_markdown(results),
        "accuracy.tex": accuracy_latex(results),
        "winners.md": winners_markdown(results),
        "winners.tex": winners_latex(results),
        REPORT_NAME: reproduction_html(results),
    }
    for name, text in texts.items():
        _write_text(place / name, text)
    return place / REPORT_NAME


def _write_text(path: Path, text: str) -> None:
    content = text.encode("utf-8", "backslashreplace")  # settings may hold half a character
    write_atomically(path, lambda file: file.write(content))
