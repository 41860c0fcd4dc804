r"""A result as text, as HTML for notebooks, as LaTeX and as Markdown; every name is escaped.

Names come from files. None of them may move a terminal's cursor, end a table row or run code.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable

from unsample import __version__
from unsample._rules import printable, wrapped
from unsample.report._table import Cell, Number, Table
from unsample.report._view import Notes, view_of

#: As in CITATION.cff.
CITATION = (
    "R. Jin, D. Li, B. Mudrak, J. Gao and Z. Liu: On Estimating Recommendation Evaluation Metrics "
    "under Sampling. AAAI 2021, doi:10.1609/aaai.v35i5.16537"
)
_MARKDOWN = re.compile(r"([\\`*_\[\]#|~!])")
_LATEX = str.maketrans(
    {char: f"\\{char}" for char in "{}$&#%_"}
    | {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        # Behind the end of a row these would be its options.
        "[": "{[}",
        "]": "{]}",
        "*": "{*}",
        "\N{PLUS-MINUS SIGN}": r"$\pm$",
        "\N{MULTIPLICATION SIGN}": r"$\times$",
        "\N{MINUS SIGN}": "$-$",
        "\N{EN DASH}": "--",
        "\N{NOT EQUAL TO}": r"$\neq$",
    }
)


#: How words and numbers stand in the tables of notebooks.
_STYLES = {
    "l": "text-align:left;padding:.2em .8em",
    "r": "text-align:right;padding:.2em .8em;white-space:nowrap",
}
#: Signs beyond Latin letters that LaTeX sets.
_LATIN_SIGNS = "\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u2022"


def as_text(result: object, *, warnings: bool = True, verbose: bool = False) -> str:
    """Return a result as aligned tables.

    Parameters
    ----------
    result
        The result of a question, or a dict of names and estimates.
    warnings
        Whether warnings stand at the end.
    verbose
        Whether columns of details, such as bounds, the settings and the sentence for a paper are
        shown too.

    Returns
    -------
    str
        The text, in which sentences are wrapped at 100 columns.
    """
    shown = view_of(result)
    settings = [f"{name}: {value}" for name, value in shown.settings if verbose]
    tables = (table.with_ranges() for table in shown.tables)
    blocks = [
        "\n".join(map(_wrapped, shown.about)),
        *(_aligned(table if verbose else table.brief) for table in tables),
        "\n".join(map(_wrapped, shown.verdicts)),
        "\n".join(_wrapped(f"{term}: {text}") for term, text in shown.notes),
        "\n".join(map(_one_line, settings)),
        _wrapped(f"for a paper: {shown.sentence}" if verbose and shown.sentence else ""),
        *(wrapped(f"warning: {text}") for text in shown.warnings if warnings),
    ]
    return "\n\n".join(filter(None, blocks))


def _wrapped(text: str) -> str:
    """Return text as one paragraph of wrapped lines, whatever line ends it holds."""
    return wrapped(_one_line(text))


def _one_line(text: object) -> str:
    """Return printable text on one line."""
    return printable(str(text)).replace("\n", "\\n").replace("\t", "\\t")


def _explained(notes: Notes) -> str:
    return "; ".join(f"{term}: {text}" for term, text in notes)


def _aligned(table: Table) -> str:
    """Return a table with a rule below its header and every column as wide as it must be."""
    whole = [[_one_line(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in whole
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def as_notebook(result: object) -> str:
    """Return a result as HTML for notebooks."""
    shown = view_of(result)
    warned = (f"Warning: {text}" for text in shown.warnings)
    below = (*shown.verdicts, _explained(shown.notes), *warned)
    tables = (_html_table(table.with_ranges().brief) for table in shown.tables)
    return "".join((*map(_paragraph, shown.about), *tables, *map(_paragraph, below)))


def _paragraph(text: str) -> str:
    return f"<p>{_html_escaped(text)}</p>" if text else ""


def _html_escaped(text: object) -> str:
    """Return text that HTML shows as it is, with everything spelt out that turns its direction."""
    return html.escape(printable(str(text)))


def _html_table(table: Table) -> str:
    """Return a table below its name, which also keeps it apart from the table above."""
    styles = [_STYLES[side] for side in table.align]
    rows = [("th", table.columns), *(("td", row) for row in table.rows)]
    lines = (
        "".join(
            f'<{tag} style="{style}">{_html_escaped(cell)}</{tag}>'
            for cell, style in zip(row, styles, strict=True)
        )
        for tag, row in rows
    )
    name = f"<p><b>{_html_escaped(table.caption)}</b></p>" if table.caption else ""
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'{name}<table style="margin-bottom:1em">{body}</table>'


def as_latex(result: object) -> str:
    r"""Return a result as LaTeX tables to paste, for documents that load ``booktabs``.

    A table has a label, a caption of one sentence, and a note on the meaning of brackets and bold
    numbers. The citation and all warnings stand above, as comments.
    """
    shown = view_of(result)
    above = [f"Made with unsample {__version__}; cite {CITATION}"]
    above += [text for text in shown.verdicts if text not in shown.sentence]
    above += [f"For the text: {shown.sentence}"] if shown.sentence else []
    above += [f"Warning: {text}" for text in shown.warnings]
    above += _on_letters(shown.tables)
    comments = "\n".join(f"% {line}" for text in above for line in _wrapped(text).splitlines())
    tables = []
    for table in shown.tables:
        note = _latex_escaped(_signs(table.narrow))
        caption = f"{table.caption} ({'; '.join(shown.about)})."
        label = f"tab:{shown.verb}-{table.identity}"
        tables.append(table_latex(table, caption, label=label, note=note))
    return "\n\n".join([comments, *tables]) + "\n"


def _on_letters(tables: Iterable[Table]) -> list[str]:
    """Return how to set letters that pdfLaTeX has not, if there are such."""
    texts = {str(cell) for table in tables for row in table.narrow.rows for cell in row}
    beyond = sorted({letter for text in texts for letter in text if _is_beyond_latin(letter)})
    if not beyond:
        return []
    letters = "".join(beyond[:20])
    how = r"XeLaTeX or LuaLaTeX, the package fontspec, and a font that has them: \setmainfont{...}"
    return [f"The letters {letters} need {how}"]


def _is_beyond_latin(letter: str) -> bool:
    """Return whether pdfLaTeX cannot set a letter from text in UTF-8.

    >>> [_is_beyond_latin(letter) for letter in "aé–Жα模"]
    [False, False, False, True, True, True]
    """
    return letter > "\u024f" and ord(letter) not in _LATEX and letter not in _LATIN_SIGNS


def table_latex(table: Table, caption: str, *, label: str = "", note: str = "") -> str:
    """Return a table for LaTeX; the ``note`` below it is LaTeX already.

    A table that is too wide for the text of an article has lines for long words, and small type.
    """
    shown = table.narrow
    columns, size = shown.set_in_paper
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex_escaped(caption)}}}",
        *([rf"\label{{{label}}}"] if label else []),
        *([size] if size else []),
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _latex_row(shown.columns),
        r"\midrule",
        *map(_latex_row, shown.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *([rf"\par\smallskip\footnotesize {note}"] if note else []),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _signs(table: Table) -> str:
    """Return the meaning of the signs of a paper's table: brackets and bold numbers."""
    cells = [cell for row in table.rows for cell in row if isinstance(cell, Number)]
    brackets = any(cell.ends is not None for cell in cells)
    signs = [f"In brackets: {table.interval}."] if brackets else []
    if any(cell.word == "bounds" for cell in cells):
        signs.append("Bounds hold whatever the distribution of ranks is.")
    if any(cell.bold for cell in cells):
        signs.append(f"Bold: {table.bold}.")
    return " ".join(signs)


def _latex_row(cells: Iterable[Cell]) -> str:
    texts = _paper_cells(cells, _latex_escaped, bold=r"\textbf{%s}")
    return " & ".join(texts) + r" \\"


def _latex_escaped(text: str) -> str:
    """Return text as LaTeX that prints it unchanged, on one line."""
    plain = " ".join(printable(text).split())
    # A hyphen before a number is a minus.
    return re.sub(r"(?<![\w-])-(?=[0-9])", "$-$", plain.translate(_LATEX))


def as_markdown(result: object) -> str:
    """Return a result as Markdown, with the pipe tables that code hosts show."""
    shown = view_of(result)
    blocks = [f"**{markdown_escaped(text)}**" for text in shown.about]
    for table in shown.tables:
        blocks += [table_markdown(table, table.caption), markdown_escaped(_signs(table.narrow))]
    blocks += map(markdown_escaped, shown.verdicts)
    blocks += (f"**Warning:** {markdown_escaped(text)}" for text in shown.warnings)
    made = markdown_escaped(f"Made with unsample {__version__}; cite {CITATION}")
    return "\n\n".join(filter(None, [*blocks, made])) + "\n"


def table_markdown(table: Table, caption: str) -> str:
    """Return a pipe table, below its caption if there is one."""
    shown = table.narrow
    header, *rows = (
        _paper_cells(row, markdown_escaped, bold="**%s**") for row in (shown.columns, *shown.rows)
    )
    rule = ["---:" if side == "r" else "---" for side in shown.align]
    lines = [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]
    if caption:
        lines = [f"### {markdown_escaped(caption)}", "", *lines]
    return "\n".join(lines)


def markdown_escaped(text: str) -> str:
    r"""Return text as Markdown that shows it unchanged, on one line.

    >>> print(markdown_escaped("*A* & <i>"))
    \*A\* &amp; &lt;i&gt;
    """
    plain = " ".join(printable(text).split())
    marked = _MARKDOWN.sub(r"\\\1", plain.replace("&", "&amp;"))
    return marked.replace("<", "&lt;").replace(">", "&gt;")


def _paper_cells(cells: Iterable[Cell], escaped: Callable[[str], str], *, bold: str) -> list[str]:
    """Return escaped cells as papers show them.

    Intervals stand behind their numbers, and the pattern ``bold`` marks significant numbers.
    """

    def shown(cell: Cell) -> str:
        if not isinstance(cell, Number):
            return escaped(cell)
        text = escaped(cell.text)
        if cell.bold:
            text = bold % text
        return f"{text} {escaped(cell.behind)}".strip()

    return [shown(cell) for cell in cells]
