"""What a confined program sees and may do, and how it is started."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CONFINED = Path(__file__).with_name("confined.py")
_DEVICES = ("null", "zero", "full", "random", "urandom")


@dataclass
class Confinement:
    """A mount namespace with a root of its own, and who one is in it.

    Attributes:
        root: an empty folder that becomes `/`, read-only.
        user: user and group.
        binds: what of the host is seen in it: source, target, whether it can be written.
        memory: file systems in memory: target, and options of tmpfs(5); without options empty and read-only.
    """

    root: Path
    user: int
    working_directory: str = "/"
    binds: list[tuple[str, str, bool]] = field(default_factory=list)
    memory: dict[str, str] = field(default_factory=dict)

    def show(self, source: Path | str, target: str | None = None, *, writable: bool = False) -> None:
        """Let a file or folder of the host be seen in it, at its own path if no other is given."""
        self.binds.append((str(source), target or str(source), writable))

    def show_devices(self) -> None:
        """Let `/proc` and the harmless devices be seen."""
        self.show("/proc")
        for device in _DEVICES:
            self.show(f"/dev/{device}")

    def link(self, name: str, target: str) -> None:
        """Put a symbolic link into the root."""
        link = self.root / name.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)

    def command(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """Return the command that becomes this one, confined; its first word is a path in there, or in its PATH."""
        specification = self.root.with_name(f"{self.root.name}.json")
        described = asdict(self) | {"root": str(self.root), "command": list(command), "environment": dict(environment)}
        specification.write_text(json.dumps(described), encoding="utf-8")
        return [sys.executable, "-I", "-S", str(_CONFINED), str(os.getpid()), str(specification)]
