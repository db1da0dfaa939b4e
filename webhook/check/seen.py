"""What a run looked at, by which a baseline tells what of it is of no use any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

ObjectKey = tuple[str, str, str, str]  # group, kind, namespace, name


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run looked at.

    Attributes:
        policies: those that looked at everything they judge; `schema` among them where schemas did.
        objects: those that were read.
        whole: whether all that a project has was read, so that what was not read does not exist.
    """

    policies: Collection[str]
    objects: Collection[ObjectKey]
    whole: bool
