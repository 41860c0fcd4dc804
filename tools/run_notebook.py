"""Run the tutorial and store what its cells show: ``python tools/refresh_docs.py`` calls this too.

A notebook is a list of cells that share their names. That needs no kernel: each cell is executed,
and the value of a last expression is shown as HTML, as a picture, or as text.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib.artist import Artist
from matplotlib.figure import Figure

NOTEBOOK = Path(__file__).parent.parent / "examples" / "tutorial.ipynb"


def read(path: Path = NOTEBOOK) -> dict[str, Any]:
    """Return a notebook."""
    return json.loads(path.read_text(encoding="utf-8"))


def run(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Return the outputs of each code cell, all cells run in order among the same names."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [_run_cell("".join(cell["source"]), names) for cell in cells]


def _run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    body = ast.parse(source).body
    ends_in_value = bool(body) and isinstance(body[-1], ast.Expr)
    last = body.pop() if ends_in_value else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)  # noqa: S102 - our own cells
        if last is not None:
            expression = ast.Expression(last.value)
            value = eval(compile(expression, "<cell>", "eval"), names)  # noqa: S307 - our own cells
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": _shown(value)})
    return outputs


def _shown(value: Any) -> dict[str, str]:
    """Return a value as a notebook shows it."""
    if isinstance(value, Artist):
        figure = value.get_figure(root=True)
        assert isinstance(figure, Figure)
        picture = io.BytesIO()
        figure.savefig(
            picture, format="png", dpi=110, bbox_inches="tight", metadata={"Software": None}
        )
        return {
            "image/png": base64.b64encode(picture.getvalue()).decode("ascii"),
            "text/plain": type(value).__name__,
        }
    data = {"text/plain": repr(value)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_()
    return data


def main() -> None:
    """Run the notebook and write its outputs into it."""
    notebook = read()
    outputs = iter(run(notebook))
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{number}"
        if cell["cell_type"] == "code":
            cell["outputs"] = next(outputs)
            cell["execution_count"] = None
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
