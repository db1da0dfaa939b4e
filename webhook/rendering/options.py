"""How charts and kustomizations are rendered, beside their values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from gpugate.webhook.manifests.bounded_file import MAX_BYTES


@dataclass(frozen=True, slots=True)
class Limits:
    """What one rendering may take: seconds until it is ended, bytes that it may write, bytes of memory (on Linux)."""

    seconds: float = 60.0
    bytes: int = MAX_BYTES
    memory: int = 4 << 30


_LIMITS: Final = Limits()


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
        texts: further values as YAML, which win over those of files.
        source: what gives these, for people.
    """

    path: str
    values: tuple[tuple[str, ...], ...] = ((),)
    set: tuple[str, ...] = ()
    release: str = ""
    namespace: str = ""
    api_versions: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How to render.

    Attributes:
        kube_version: the version of Kubernetes for which charts are rendered, such as `1.35`.
        namespace: the namespace of a release that names none.
        charts: values of charts; a chart without any here is rendered once with its own.
        changed: real paths of changed files; what none of them is part of is left out. None renders all.
        inflate: kustomizations may inflate the Helm charts that they name, as `kustomize build --enable-helm` does.
        jobs: how many programs run at once.
        limits: what each may take.
    """

    kube_version: str
    namespace: str = "default"
    charts: tuple[ChartValues, ...] = ()
    changed: frozenset[str] | None = field(default=None, repr=False)
    inflate: bool = False
    jobs: int = 1
    limits: Limits = _LIMITS
