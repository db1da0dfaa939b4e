"""How Sphinx builds the site: `make docs`.

The source is the repository as it is read on its own pages: Markdown with relative links, among them some that leave
`docs/` (ARCHITECTURE.md, the list of policies). So the root of the repository is the source folder, of which only
Markdown pages are taken, and nothing in a page is written for Sphinx alone. The order of pages is in `site/contents.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent / "site"))

from contents import PAGES, SECTIONS
from pygments.lexers.special import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ROOT = Path(__file__).resolve().parent.parent

project = "gpugate"
root_doc = "docs/index"
include_patterns = ["docs/**.md", *PAGES]
# Sphinx walks every folder that is not excluded, and follows links.
exclude_patterns = [path.name for path in _ROOT.iterdir() if path.is_dir() and path.name not in {"docs", "policies"}]
exclude_patterns += ["policies/[!R]*"]

extensions = ["myst_parser"]
myst_heading_anchors = 4
highlight_language = "none"

html_theme = "furo"
html_title = "gpugate"
html_copy_source = False
html_use_index = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_extra_path = ["site/root"]
html_theme_options = {"footer_icons": []}


def _add_contents(_app: Sphinx, name: str, source: list[str]) -> None:
    """Write the contents behind the first page, where readers of the Markdown are spared of them."""
    if name != root_doc:
        return
    for title, pages in SECTIONS.items():
        entries = "\n".join(f"/{page}" for page in pages)
        source[0] += f"\n```{{toctree}}\n:caption: {title}\n:hidden:\n:maxdepth: 2\n{entries}\n```\n"
    source[0] += "\n```{toctree}\n:hidden:\n:glob:\n/docs/policies/*/*\n```\n"


def setup(app: Sphinx) -> None:
    """Register what is done while the pages are read."""
    app.add_lexer("csv", TextLexer)
    app.connect("source-read", _add_contents)
