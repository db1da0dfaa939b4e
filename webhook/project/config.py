"""What a project file may say; strict, and typed when it is read. What each key means stands in `settings`."""

from __future__ import annotations

from typing import Literal

import msgspec


class Chart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How one Helm chart is rendered, once for each entry of `values`.

    Attributes:
        path: the chart's directory or archive.
        values: a rendering each: a values file, or a list of them, of which a later one wins.
        set: `KEY=VALUE` as `helm --set` takes them, for every rendering.
        release: the name of the release; absent, the name of the chart's directory.
        namespace: the namespace of the release; absent, that of the run.
        api_versions: what `.Capabilities.APIVersions` has beside Helm's own.
    """

    path: str
    values: tuple[str | tuple[str, ...], ...] = ()
    set: tuple[str, ...] = ()
    release: str = ""
    namespace: str = ""
    api_versions: tuple[str, ...] = ()


class ProjectConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a project file says; every key may be absent."""

    paths: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    tests: tuple[str, ...] | None = None
    policy_file: str | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    min_mode: Literal["warn", "enforce"] | None = None
    baseline: str | None = None
    namespace: str | None = None
    complete_context: bool | None = None
    context_from: tuple[str, ...] | None = None
    charts: tuple[Chart, ...] | None = None
    schemas: str | None = None
    output: tuple[str, ...] | None = None
