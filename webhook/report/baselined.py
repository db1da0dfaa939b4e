"""What a baseline did in a run: how much it hid, and which of its entries are of no use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class BaselineKey:
    """What makes findings of different runs the same.

    Neither file nor line is part of it, so that it survives moved lines and files. `path` names list elements by their
    merge key. The version of the kind is left out, because it changes while the object stays. `policy` is `schema` for what
    schemas refuse.
    """

    policy: str
    group: str
    kind: str
    namespace: str
    name: str
    path: str

    def __str__(self) -> str:
        names = "/".join(part for part in (self.kind, self.namespace, self.name) if part)
        return f"{self.policy} {names} {self.path}".rstrip()


@dataclass(frozen=True, slots=True)
class BaselineUse:
    """What a baseline did.

    Attributes:
        file: its name.
        hidden: how many findings it hid.
        stale: entries that match nothing any more, with how many findings they would still hide.
        unseen: the same, of objects that were not among the files; none where only a part of the project was read.
    """

    file: str
    hidden: int = 0
    stale: tuple[tuple[BaselineKey, int], ...] = ()
    unseen: tuple[tuple[BaselineKey, int], ...] = ()
