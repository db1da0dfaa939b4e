"""Read a dump of a cluster: output of `kubectl get -o yaml|json`, of `kubectl cluster-info dump`, or a must-gather."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.objects import GroupVersionKind, Kind
from gpugate.webhook.audit.model import Cluster, NotEvaluated
from gpugate.webhook.audit.source import NotReadError, Packed, Stored
from gpugate.webhook.cluster.discovery import resource_name
from gpugate.webhook.manifests.dump_files import ListKind, found_in
from gpugate.webhook.manifests.inputs import Passed, expand
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.manifests.objects import Manifest

# API groups that every API server serves (Kubernetes v1.36): if a dump has none of their objects, they were not dumped.
_EVERYWHERE: Final = frozenset({"", "apps", "autoscaling", "batch", "policy"})


class DumpSource:
    """Files and directories, which are read once in the constructor.

    With `complete`, anything missing from the dump does not exist in the cluster.
    """

    def __init__(self, paths: Sequence[str], *, complete: bool = False) -> None:
        self._cluster = Cluster(", ".join(paths))
        self._complete = complete
        self._objects: dict[tuple[str, str], Packed] = {}
        self._names: set[tuple[str, str, str, str]] = set()
        self._trouble: list[NotEvaluated] = []
        for path in expand(paths):
            if isinstance(path, Problem):
                self._troubled(path)
            elif isinstance(path, Passed) and path.hidden:
                continue
            elif isinstance(path, Passed):
                self._trouble.append(NotEvaluated(path.name, path.reason))
            else:
                for item in found_in(path):
                    self._take(item)

    @property
    def cluster(self) -> Cluster:
        """The dump's paths."""
        return self._cluster

    @property
    def absence(self) -> str:
        """Why there is nothing of a kind that is absent."""
        return "not in the dump: the cluster has none, or they were not dumped"

    def read(self, kind: Kind) -> Iterator[Stored]:
        """Yield the objects of a kind, in the version of the dump.

        Raises:
            NotReadError: the dump contains none, and may be incomplete.
        """
        stored = self._objects.get((kind.group, kind.name))
        if stored is not None:
            yield from stored
        elif not self._complete:
            everywhere = kind.group in _EVERYWHERE
            hint = f": add the output of `kubectl get {kind.plural} -A -o json`" if everywhere else ""
            raise NotReadError(f"the dump contains no {resource_name(kind)}{hint}", absent=not everywhere)

    def find(self, api_version: str, name: str) -> Kind:
        """Return the kind of an owner reference; its plural is a guess."""
        gvk = GroupVersionKind.of(api_version, name)
        return Kind(gvk.group, (gvk.version,), name, f"{name.lower()}s")

    def fetch(self, kind: Kind, namespace: str, name: str) -> Stored | None:  # noqa: ARG002 -- the protocol's signature
        """Return None, because `read` yields all objects of the dump."""
        return None

    def trouble(self) -> Sequence[NotEvaluated]:
        """Return the unreadable parts of the files."""
        return tuple(self._trouble)

    def _take(self, item: Manifest | Problem | ListKind) -> None:
        if isinstance(item, Problem):
            self._troubled(item)
            return
        if isinstance(item, ListKind):
            self._objects.setdefault((item.kind.group, item.kind.kind), Packed())
            return
        request = item.request
        # A must-gather contains each Pod twice: in the list of its namespace, and in a separate file.
        key = (request.kind.group, request.kind.kind, request.namespace, request.name)
        if key not in self._names:
            self._names.add(key)
            self._objects.setdefault(key[:2], Packed()).add(Stored(request.kind, dict(request.object or {})))

    def _troubled(self, problem: Problem) -> None:
        if not problem.warning:
            where = f"{problem.source}:{problem.line}" if problem.line else problem.source
            self._trouble.append(NotEvaluated(where, f"{problem.message}: {problem.remedy}"))
