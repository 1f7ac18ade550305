"""The documentation site: `make docs` builds it into docs/_build, offline."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

project = "joinsim"
author = "the joinsim authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated"]
exclude_patterns = ["_build"]

html_theme = "furo"
pygments_dark_style = "github-dark"  # the default underlines what is imported
html_title = "joinsim"
html_static_path = ["_static"]
html_css_files = ["joinsim.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

myst_heading_anchors = 3
smartquotes_action = "qe"  # dashes stay: an option's two are no long one
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
_NUMBERS = ("PositiveInt", "NonNegativeInt", "PositiveFloat", "NonNegativeFloat")
autodoc_type_aliases = {name: name for name in _NUMBERS}
autodoc_preserve_defaults = True
napoleon_use_rtype = False
default_role = "literal"  # in docstrings, `name` is code
