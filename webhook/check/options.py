"""How a run judges, beside the rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.policies.sdk.findings import Stance

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection
    from pathlib import Path

    from gpugate.webhook.check.templates import Declared


@dataclass(frozen=True, slots=True)
class Options:
    """How a run judges.

    Attributes:
        today: the day, for exemptions.
        namespace: the namespace of objects that name none.
        complete_context: the files hold every object of the cluster, so that what is missing in them is missing.
        min_stance: the least that counts for the exit code; below `enforce`, patches count too.
        known: the id of every policy there is, whether it is in force or not; for comments that name one.
        ignores: honour the comments that let findings pass.
        schemas: also tell what API servers refuse by the schemas of kinds.
        schema_folder: holds the schemas that the user added.
        templates: files that a tool renders before the API server gets them.
        whole: the files are all that the project has, so that an exemption that lets nothing off is of no use.
    """

    today: dt.date
    namespace: str = "default"
    complete_context: bool = False
    min_stance: Stance = Stance.ENFORCE
    known: Collection[str] = ()
    ignores: bool = True
    whole: bool = True
    schemas: bool = True
    schema_folder: Path | None = None
    templates: tuple[Declared, ...] = ()
