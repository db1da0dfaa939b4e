"""Checks the site that was built: every link leads somewhere, and no page asks another host for anything.

Called as `check_links.py FOLDER`; exit code 1 when something is wrong. Addresses of other sites are looked at and not
asked, because a site that is down is no mistake of ours.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

# What a browser fetches by itself, and where it says from where.
_FETCHED: Final = {
    ("audio", "src"),
    ("iframe", "src"),
    ("img", "src"),
    ("object", "data"),
    ("script", "src"),
    ("source", "src"),
    ("video", "src"),
}
# A `link` to anything else is advice, such as which page comes next.
_FETCHED_LINKS: Final = {"apple-touch-icon", "icon", "manifest", "modulepreload", "preload", "stylesheet"}


@dataclass(slots=True)
class Page:
    """What one page says: its anchors, where it leads, what it fetches."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "link":
            given = dict(attrs)
            if _FETCHED_LINKS & set((given.get("rel") or "").split()):
                self.page.fetched.append(given.get("href") or "")
        for name, value in attrs:
            if name in {"id", "name"} and value:
                self.page.anchors.add(value)
            elif tag == "a" and name == "href" and value:
                self.page.links.append(value)
            elif (tag, name) in _FETCHED and value:
                self.page.fetched.append(value)


def mistakes(folder: Path) -> Iterator[str]:
    """Yield what is wrong in a folder of pages, each with the page."""
    pages = {path: _read(path) for path in sorted(folder.rglob("*.html"))}
    if not pages:
        yield f"{folder}: there is no page"
    for path, page in pages.items():
        where = path.relative_to(folder)
        for link in page.links:
            yield from (f"{where}: {link}: {wrong}" for wrong in _wrong_link(link, path, pages))
        for address in page.fetched:
            yield from (f"{where}: {address}: {wrong}" for wrong in _wrong_fetch(address, path))


def _read(path: Path) -> Page:
    reader = _Reader()
    reader.feed(path.read_text())
    return reader.page


def _wrong_link(link: str, path: Path, pages: dict[Path, Page]) -> Iterator[str]:
    address = urlsplit(link)
    if address.scheme in {"http", "https"}:
        if "." not in (address.hostname or "") or " " in link:
            yield "is no address of a site"
        return
    if address.scheme or address.netloc:
        yield "is neither a page of this site nor a web address"
        return
    target = (path.parent / unquote(address.path)).resolve() if address.path else path.resolve()
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        yield "there is no such file"
    elif address.fragment and target.suffix == ".html" and unquote(address.fragment) not in pages[target].anchors:
        yield "there is no such heading"


def _wrong_fetch(address: str, path: Path) -> Iterator[str]:
    parts = urlsplit(address)
    if parts.scheme == "data":
        return
    if parts.scheme or parts.netloc:
        yield "would be fetched from another host"
    elif not (path.parent / unquote(parts.path)).is_file():
        yield "there is no such file"


def main() -> int:
    """Print what is wrong; 1 when anything is."""
    folder = Path(sys.argv[1]).resolve()
    found = list(mistakes(folder))
    for line in found:
        print(line, file=sys.stderr)
    print(f"{folder}: {len(list(folder.rglob('*.html')))} pages, {len(found)} mistakes")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
