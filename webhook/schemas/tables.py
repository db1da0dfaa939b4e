"""Load and decode the schema table of a kind.

A node may have several parents. Without a limit a small table could take unlimited time: each of thirty nodes that refers
to the next one twice in `anyOf` doubles the work.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.cel.patterns import PatternError, translated
from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk.platform import at_least
from gpugate.webhook.schemas.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.platform import Target
    from gpugate.webhook.schemas.table import Node, Release

BUNDLED: Final = Path(__file__).parent / "data"
META: Final = "meta.k8s.io.ObjectMeta.json"
CORE: Final = "core.json"  # of workloads and other kinds of Kubernetes itself, by `apiVersion kind`
# The kinds of that table, and those of dynamic resource allocation, which have CEL expressions.
CORE_KINDS: Final = frozenset(
    {("", "Pod"), ("", "ResourceQuota"), ("autoscaling", "HorizontalPodAutoscaler"), ("policy", "PodDisruptionBudget")}
    | {("apps", kind) for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")}
    | {("batch", kind) for kind in ("CronJob", "Job")}
    | {("resource.k8s.io", kind) for kind in ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate")}
)
FOLDER: Final = Path(".gpugate/schemas")  # of a project, where it names no other


def file_name(group: str, kind: str) -> str:
    """Return the name of the file that holds a kind's table."""
    return f"{group}.{kind}.json"


def find(group: str, kind: str, folder: Path | None) -> Path | None:
    """Return the table of a kind: the user's if there is one, else gpugate's."""
    # The author of the object chooses these.
    if not kind.isalnum() or not group.replace(".", "").replace("-", "").isalnum():
        return None
    files = (directory / file_name(group, kind) for directory in (folder, BUNDLED) if directory)
    return next((file for file in files if file.is_file()), None)


def listed(folder: Path) -> Iterator[Path]:
    """Yield the tables in a folder, by name; none where there is no folder."""
    yield from (file for file in sorted(folder.glob("*.json")) if file.name not in {CORE, META})


def around(table: Table, target: Target) -> Sequence[Release]:
    """Return the release that a target names, or the two between which it is; the nearest one outside of all."""
    if not table.project:
        return table.releases
    minor = str(getattr(target, table.project))
    exact = [release for release in table.releases if release.minor == minor]
    if exact:
        return exact
    older = [release for release in table.releases if at_least(minor, release.minor)]
    newer = [release for release in table.releases if not at_least(minor, release.minor)]
    return (*older[-1:], *newer[:1])


MOST_LOOKS: Final = 1_000  # at one value; the definitions known look at none more than 10 times
_DEEPEST: Final = 250


def refuse_branching(nodes: Sequence[Node]) -> None:
    """Refuse a table whose nodes would visit a value too often, or are nested too deeply.

    Raises:
        ValueError: they would.
    """
    looks: list[int] = []
    depths: list[int] = []
    for node in nodes:
        nested = [*node.all_of, *node.any_of, *node.one_of, *([node.none_of] if node.none_of is not None else ())]
        below = [*node.properties.values(), *(index for index in (node.values, node.items) if index is not None)]
        looks.append(sum(looks[index] for index in nested) + max((looks[index] for index in below), default=1))
        depths.append(1 + max((depths[index] for index in (*nested, *below)), default=0))
        if looks[-1] > MOST_LOOKS or depths[-1] > _DEEPEST:
            raise ValueError("its allOf, anyOf, oneOf and not stand in each other too often, or its schemas too deep")


_AGAIN: Final = "make it again with `gpugate schema add`"
_MOST: Final = 16 * 1024 * 1024  # bytes; the largest table that comes with gpugate has 50 KB


class TableError(GpugateError):
    """A table cannot be read: which, why, and what to do."""


def read(file: Path) -> Table:
    """Read a table that comes with gpugate, or one that a user added.

    Raises:
        TableError: the file cannot be read, or is no table of this version of gpugate.
    """
    try:
        if file.stat().st_size > _MOST:
            raise TableError(f"{file}: larger than {_MOST:,} bytes: {_AGAIN}")
        table = msgspec.json.decode(file.read_bytes(), type=Table)
        return table if file.parent == BUNDLED else of_user(table)
    except OSError as error:
        raise TableError(f"{file}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise TableError(f"{file}: no table of schemas that this version reads ({error}): {_AGAIN}") from None


def of_user(table: Table) -> Table:
    """Return a safe copy of a table of the checked repository, which the author of a change can edit.

    Raises:
        ValueError: it refers to missing nodes, has no release, or would take too long.
    """
    if not (table.releases and all(release.served for release in table.releases)):
        raise ValueError("it is of no release, or of one that serves no version")
    from gpugate.webhook.schemas.compile import rules  # noqa: PLC0415 -- brings the compiler of definitions along

    def pass_over(*_: str) -> None:
        """Ignore what is not checked: it was reported when the table was added."""

    nodes = tuple(
        msgspec.structs.replace(
            node,
            pattern=node.pattern if _is_quick(node.pattern) else "",
            rules=rules([rule.written for rule in node.rules], pass_over),
        )
        for node in table.nodes
    )
    # A node refers only to earlier ones, so that there are no cycles.
    for index, node in enumerate(nodes):
        _refuse_unless(index, *node.properties.values(), *node.all_of, *node.any_of, *node.one_of)
        _refuse_unless(
            index, *(reference for reference in (node.values, node.items, node.none_of) if reference is not None)
        )
        if not node.defaults.keys() <= node.properties.keys():
            raise ValueError("a default is of no member")
    _refuse_unless(len(nodes), *(version.root for release in table.releases for version in release.served.values()))
    refuse_branching(nodes)
    return msgspec.structs.replace(table, project="", nodes=nodes)


def _refuse_unless(end: int, *references: int) -> None:
    if not all(0 <= reference < end for reference in references):
        raise ValueError("a node names one that is not there")


def _is_quick(pattern: str) -> bool:
    try:
        translated(pattern)
    except PatternError:
        return False
    return True
