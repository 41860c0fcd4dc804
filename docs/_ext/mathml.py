"""Formulas as MathML, which browsers draw themselves: no script, nothing fetched."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

#: A large closing bracket with an index or a power.
_CLOSING = re.compile(r"(<m(?:sup|sub|subsup)>)<mo( minsize=[^>]*)>([)\]}|])</mo>")


def as_mathml(formula: str, display: str) -> str:
    r"""Return a formula as MathML, in which both brackets of a pair are equally tall.

    Browsers take a bracket below a power for a sign between two terms, and do not stretch it.

    >>> print(as_mathml(r"\big)^2", "inline").partition("<msup>")[2].partition("</mo>")[0])
    <mrow><mo form="postfix" stretchy="true" minsize="1.2em" maxsize="1.2em">)
    """
    stretched = r'\1<mrow><mo form="postfix" stretchy="true"\2>\3</mo></mrow>'
    return _CLOSING.sub(stretched, convert(formula, display=display))


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(as_mathml(node.astext(), display="inline"))
    raise nodes.SkipNode


def visit_display(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls where it is too wide."""
    formula = as_mathml(node.astext(), display="block")
    translator.body.append(f'<div class="formula" tabindex="0">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the writer of formulas under the name that builders look for."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
