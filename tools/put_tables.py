"""Copy the tables of ``make prove`` and ``make bench`` into the pages that show them.

``out/prove.md`` goes between the lines ``<!-- table: prove -->`` and ``<!-- end of table -->`` of a
page of docs/, and ``out/bench.md`` likewise. A table that was not made stays as it is.
"""

from __future__ import annotations

from pathlib import Path

from page_tables import filled

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Fill every page, and say which ones changed."""
    made = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "out").glob("*.md")}
    for page in sorted((ROOT / "docs").glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = filled(before, made)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"changed: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
