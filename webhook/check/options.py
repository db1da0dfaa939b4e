"""Options of a run of `check`, in addition to the policies."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection
    from pathlib import Path

    from gpugate.webhook.manifests.placeholders import Declared


class FailOn(StrEnum):
    """The lowest decision that makes the exit code 1. Each one includes those before it."""

    DENY = "deny"
    MUTATE = "mutate"
    """The webhook would patch an object."""
    WARN = "warn"
    NEVER = "never"
    """The exit code is never 1; it is still 3 without objects and 4 if an input could not be read or evaluated."""


class Options(Struct, frozen=True):
    """Options of a run.

    Attributes:
        today: the current date, for exemptions.
        namespace: the namespace of objects without one.
        complete_context: the files contain all objects of the cluster; any other object does not exist.
        fail_on: the lowest decision that makes the exit code 1.
        known: the ids of all policies, enabled or not, for comments that name one.
        ignores: apply the comments that suppress findings.
        schemas: validate objects with the schemas of their kinds.
        schema_folder: the folder of the schemas that the user added.
        templates: files that a tool renders before they are applied.
        whole: the files are the whole project, so an exemption without a finding is unused.
    """

    today: dt.date
    namespace: str = "default"
    complete_context: bool = False
    fail_on: FailOn = FailOn.DENY
    known: Collection[str] = ()
    ignores: bool = True
    whole: bool = True
    schemas: bool = True
    schema_folder: Path | None = None
    templates: tuple[Declared, ...] = ()
