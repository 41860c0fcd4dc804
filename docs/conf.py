"""How the documentation is built: ``make docs``, without warnings, into ``out/docs``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import unsample  # noqa: E402

project = "unsample"
author = "The unsample developers"
copyright = "The unsample developers, BSD-3-Clause"  # noqa: A001 - Sphinx wants this name
version = release = unsample.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "api",
    "commands",
    "mathml",
    "notebook",
]
exclude_patterns = ["_ext"]
nitpicky = True
# Types of other libraries (no inventory is fetched: the site builds offline), and names inside
# docstrings that are code rather than references.
nitpick_ignore_regex = [
    (r"py:(class|data|obj|exc)", r"(numpy|np|npt|scipy|torch|pyspark|matplotlib|collections)\b.*"),
    (r"py:class", r"(?!unsample\b).*"),
    (r"py:class", r"unsample\..*\._.*"),  # private bases, which are not for users
    (r"py:class", r"unsample\.questions\..*"),  # parts of results, which name their fields
    (r"py:obj", r".*"),
]
default_role = "py:obj"
# A bare `Design` may mean how items are sampled or how an evaluation is done: any link will do.
suppress_warnings = ["ref.python"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath", "smartquotes"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
autodoc_use_type_comments = False
# Shown by their names: what they stand for fills half a page.
autodoc_type_aliases = {
    name: name.rpartition(".")[2]
    for name in (
        "npt.ArrayLike",
        "BoolArray",
        "FloatArray",
        "IntArray",
        "Seed",
        "Progress",
        "Score",
    )
}
napoleon_google_docstring = False
napoleon_use_ivar = True
# Arguments that are described together stay together: one entry, one text.
napoleon_use_param = False
napoleon_use_rtype = False
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "unsample"
# Formulas need a font made for mathematics, which many systems lack; ziamath brings STIX Two.
html_static_path = ["_static", str(Path(find_spec("ziamath").origin).parent / "fonts")]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_logo": "mark.svg",
    "dark_logo": "mark.svg",
    "sidebar_hide_name": False,
    "light_css_variables": {
        "color-brand-primary": "#0b6e69",
        "color-brand-content": "#0b6e69",
        "font-stack": "Inter, 'Source Sans 3', 'Segoe UI', system-ui, sans-serif",
    },
    "dark_css_variables": {
        "color-brand-primary": "#5fd0c5",
        "color-brand-content": "#5fd0c5",
    },
}
