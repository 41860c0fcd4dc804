"""The tutorial as a page: the cells of ``examples/tutorial.ipynb`` with the outputs stored in it.

``make docs`` runs the notebook and compares, so what the page shows is what the code gives.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

SOURCE = Path(__file__).parents[2] / "examples" / "tutorial.ipynb"
PAGE = "tutorial.md"


def output_as_markdown(output: dict[str, Any], folder: Path, name: str) -> str:
    """Return one output: a picture, a table, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        (folder / f"{name}.png").write_bytes(base64.b64decode(data["image/png"]))
        return f"![Output of the cell above]({folder.name}/{name}.png)"
    if "text/html" in data:
        table = "".join(data["text/html"])
        return f"```{{raw}} html\n<div class='output'>{table}</div>\n```"
    text = "".join(output.get("text") or data["text/plain"])
    return f"```text\n{text.rstrip()}\n```"


def write_page(app: Sphinx) -> None:
    """Write the page into the source folder."""
    folder = Path(app.srcdir, "tutorial")
    folder.mkdir(exist_ok=True)
    parts = []
    for number, cell in enumerate(json.loads(SOURCE.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for place, output in enumerate(cell["outputs"]):
            parts.append(output_as_markdown(output, folder, f"cell-{number}-{place}"))
    text = "\n\n".join(parts) + "\n"
    page = Path(app.srcdir, PAGE)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page before sources are read."""
    app.connect("builder-inited", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
