"""Copy the tables of ``make prove`` and ``make bench`` into the pages that show them.

``out/prove.md`` goes between the lines ``<!-- table: prove -->`` and ``<!-- end of table -->`` of a
page of docs/, and ``out/bench.md`` likewise. A table that was not made stays as it is.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def fill(found: re.Match[str]) -> str:
    """Return a block with its table as it was made last."""
    made = ROOT / "out" / f"{found[2]}.md"
    if not made.exists():
        return found[0]
    return f"{found[1]}{made.read_text(encoding='utf-8')}{found[3]}"


def main() -> None:
    """Fill every page, and say which ones changed."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = BLOCK.sub(fill, before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"changed: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
