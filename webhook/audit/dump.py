"""Read a dump of a cluster: output of `kubectl get -o yaml|json`, of `kubectl cluster-info dump`, or a must-gather."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.objects import GroupVersionKind, Kind
from gpugate.webhook.audit.source import NotReadError, Packed, Stored
from gpugate.webhook.cluster.discovery import resource_name
from gpugate.webhook.manifests.dump_files import ListKind, found_in
from gpugate.webhook.manifests.inputs import Passed, expand
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.report.audited import Cluster, NotEvaluated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.manifests.objects import Manifest

# The API groups of kinds that every API server has (Kubernetes v1.36): a dump without these was not told to have them.
_EVERYWHERE: Final = frozenset({"", "apps", "autoscaling", "batch", "policy"})


class DumpSource:
    """Some files and directories, read once, when this is made.

    With `complete` the dump holds every object of the cluster, so that what it has nothing of does not exist.
    """

    def __init__(self, paths: Sequence[str], *, complete: bool = False) -> None:
        self._cluster = Cluster(", ".join(paths))
        self._complete = complete
        self._objects: dict[tuple[str, str], Packed] = {}
        self._seen: set[tuple[str, str, str, str]] = set()
        self._trouble: list[NotEvaluated] = []
        for path in expand(paths):
            if isinstance(path, Problem):
                self._troubled(path)
            elif isinstance(path, Passed) and path.hidden:
                continue
            elif isinstance(path, Passed):
                self._trouble.append(NotEvaluated(path.name, path.reason))
            else:
                for found in found_in(path):
                    self._take(found)

    @property
    def cluster(self) -> Cluster:
        """The dump's paths."""
        return self._cluster

    @property
    def absence(self) -> str:
        """Why there is nothing of a kind that is absent."""
        return "the dump holds none of this: the cluster has none, or it was not asked for"

    def read(self, kind: Kind) -> Iterator[Stored]:
        """Yield the objects of a kind, in whatever version the dump has them.

        Raises:
            NotReadError: there are none, and nothing says that there should be none.
        """
        held = self._objects.get((kind.group, kind.name))
        if held is not None:
            yield from held
        elif not self._complete:
            everywhere = kind.group in _EVERYWHERE
            hint = f": add what `kubectl get {kind.plural} -A -o json` says" if everywhere else ""
            raise NotReadError(f"the dump holds no {resource_name(kind)}{hint}", absent=not everywhere)

    def find(self, api_version: str, name: str) -> Kind:
        """Return the kind that an object names as that of its owner; nothing is known of its plural."""
        gvk = GroupVersionKind.of(api_version, name)
        return Kind(gvk.group, (gvk.version,), name, f"{name.lower()}s")

    def one(self, kind: Kind, namespace: str, name: str) -> Stored | None:  # noqa: ARG002 -- the protocol's signature
        """Return nothing: all that the dump holds of a kind was read."""
        return None

    def trouble(self) -> Sequence[NotEvaluated]:
        """Return what in the files could not be read."""
        return tuple(self._trouble)

    def _take(self, found: Manifest | Problem | ListKind) -> None:
        if isinstance(found, Problem):
            self._troubled(found)
            return
        if isinstance(found, ListKind):
            self._objects.setdefault((found.kind.group, found.kind.kind), Packed())
            return
        request = found.request
        # A must-gather has Pods twice: in the list of their namespace, and in a file of their own.
        key = (request.kind.group, request.kind.kind, request.namespace, request.name)
        if key not in self._seen:
            self._seen.add(key)
            self._objects.setdefault(key[:2], Packed()).add(Stored(request.kind, dict(request.object or {})))

    def _troubled(self, problem: Problem) -> None:
        if not problem.warning:
            where = f"{problem.source}:{problem.line}" if problem.line else problem.source
            self._trouble.append(NotEvaluated(where, f"{problem.message}: {problem.remedy}"))
