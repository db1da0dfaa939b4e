"""With which values a chart is rendered."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChartValues:
    """How one chart is rendered, once for each list of values files.

    Attributes:
        path: the chart's directory or archive; like all paths here as seen from the working directory.
        values: a rendering each: the values files, of which a later one wins. One empty list are the chart's own values.
        set: `KEY=VALUE` as `helm --set` takes them, for every rendering.
        release: the name of the release; empty for the name of the chart's directory.
        namespace: the namespace of the release; empty for that of the run.
        api_versions: what `.Capabilities.APIVersions` has beside Helm's own, such as `monitoring.coreos.com/v1`.
    """

    path: str
    values: tuple[tuple[str, ...], ...] = ((),)
    set: tuple[str, ...] = ()
    release: str = ""
    namespace: str = ""
    api_versions: tuple[str, ...] = ()
