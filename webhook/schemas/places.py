"""Where tables are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

BUNDLED: Final = Path(__file__).parent / "data"
META: Final = "meta.k8s.io.ObjectMeta.json"
FOLDER: Final = Path(".gpugate/schemas")  # of a project, where it names no other


def file_name(group: str, kind: str) -> str:
    """Return the name of the file that holds a kind's table."""
    return f"{group}.{kind}.json"


def find(group: str, kind: str, folder: Path | None) -> Path | None:
    """Return the table of a kind: the user's where there is one, else the one that comes with gpugate."""
    # Whoever writes the object writes these.
    if not kind.isalnum() or not group.replace(".", "").replace("-", "").isalnum():
        return None
    files = (each / file_name(group, kind) for each in (folder, BUNDLED) if each)
    return next((file for file in files if file.is_file()), None)


def listed(folder: Path) -> Iterator[Path]:
    """Yield the tables in a folder, by name; none where there is no folder."""
    yield from (file for file in sorted(folder.glob("*.json")) if file.name != META)
