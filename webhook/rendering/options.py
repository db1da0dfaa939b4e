"""How charts and kustomizations are rendered, beside their values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.bounded_file import MAX_BYTES

if TYPE_CHECKING:
    from gpugate.webhook.rendering.charts import ChartValues


@dataclass(frozen=True, slots=True)
class Limits:
    """What one rendering may take: seconds until it is ended, bytes that it may write, bytes of memory (on Linux)."""

    seconds: float = 60.0
    bytes: int = MAX_BYTES
    memory: int = 4 << 30


_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How to render.

    Attributes:
        kube_version: the version of Kubernetes that charts are told, such as `1.35`.
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
