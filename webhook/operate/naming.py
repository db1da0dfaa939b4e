"""Finds out what the parts of an installation are called, from what its webhook configurations say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.generate.probe import entry_name
from gpugate.webhook.operate.configurations import both
from gpugate.webhook.operate.installation import Names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.cluster.connection import Connection

_NAMESPACE: Final = "kubernetes.io/metadata.name"


def found_names(connection: Connection, configuration: str, namespace: str | None) -> Names:
    """Return the names of the installation whose configurations are called `configuration`.

    Namespace and Service are those that the entry for probes names; everything else is called after the configurations,
    as the chart has it. A namespace that is given counts.
    """
    names = Names(
        configuration=configuration,
        service=configuration,
        lease=configuration,
        secret=f"{configuration}-certificates",
        service_account=configuration,
    )
    for entry in _probes(connection, configuration):
        service = entry["clientConfig"].get("service") or {}
        selected = (entry.get("namespaceSelector") or {}).get("matchLabels") or {}
        names = replace(
            names,
            namespace=selected.get(_NAMESPACE) or service.get("namespace") or names.namespace,
            service=service.get("name") or names.service,
        )
        break
    return replace(names, namespace=namespace) if namespace else names


def _probes(connection: Connection, configuration: str) -> Iterator[dict[str, Any]]:
    for phase, each in zip(("mutate", "validate"), both(configuration), strict=True):
        try:
            found = each.read(connection)
        except CallError:
            continue
        yield from (e for e in (found or {}).get("webhooks") or () if e["name"] == entry_name(phase))
