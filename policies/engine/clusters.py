"""One policy file for many clusters: what holds in one of them.

A file says what holds everywhere, and under `clusters` what is different in the clusters that a selector matches. The entries
that match apply in the order of the file, and a later one takes precedence: over the entries before it, and over what holds
everywhere. Without matching entries, the file means what it means without `clusters`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import fields, replace

from gpugate.policies.engine.config import ClusterEntry, ConfigError, PolicyConfig
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.platform import ClusterIdentity
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpugate.policies.sdk.field import Path

# A cluster of which nothing is known, which no selector matches: what holds everywhere.
EVERYWHERE = ClusterIdentity()


class ClusterConfig(PolicyConfig, frozen=True, kw_only=True):
    """A policy configuration as it holds in one cluster.

    Attributes:
        file: the configuration of all clusters.
        applied: the indices of the entries of `clusters` that apply.
    """

    file: PolicyConfig
    applied: tuple[int, ...]


class Layer(Struct, frozen=True):
    """A section of a configuration with modes and parameters of policies, and its path."""

    path: Path
    section: PolicyConfig | ClusterEntry


def layers_of(config: PolicyConfig) -> tuple[Layer, ...]:
    """Return the sections that hold, in the order of their precedence; the last takes precedence."""
    if not isinstance(config, ClusterConfig):
        return (Layer((), config),)
    applied = (Layer(("clusters", index), config.file.clusters[index]) for index in config.applied)
    return (Layer((), config.file), *applied)


def settle(config: PolicyConfig, cluster: ClusterIdentity | None) -> PolicyConfig:
    """Return a configuration as it holds in a cluster; one without `clusters` stays as it is, but for the cluster's name.

    Args:
        config: the configuration of all clusters.
        cluster: the cluster; its name, region and labels take precedence over those of the configuration. None is the
            cluster that the configuration names.

    Raises:
        ConfigError: the configuration depends on the cluster, and nothing is known of it.
    """
    identity = _identity(config.platform.cluster, cluster)
    if not config.clusters:
        if identity in (None, EVERYWHERE, config.platform.cluster):
            return config
        return replace(config, platform=replace(config.platform, cluster=identity))
    if identity is None:
        raise ConfigError(
            ("clusters",),
            "depends on the cluster, but its name and labels are unknown: add --cluster-name NAME and --cluster-label KEY=VALUE, "
            "or set platform.cluster",
        )
    known = labels_of(identity)
    applied = tuple(index for index, entry in enumerate(config.clusters) if not unmatched(entry, known))
    entries = [config.clusters[index] for index in applied]
    target, platform = config.target, config.platform
    for entry in entries:
        target = replace(target, **_set(entry.target))
        platform = replace(platform, **_set(entry.platform))
    of_config = {field.name: getattr(config, field.name) for field in fields(PolicyConfig)}
    modes = [entry.mode for entry in entries if entry.mode is not None]
    namespaces = dict(config.namespaces)
    for entry in entries:
        for name, differing in entry.namespaces.items():
            both = {**namespaces[name].policies, **differing.policies} if name in namespaces else differing.policies
            namespaces[name] = replace(differing, policies=both)
    return ClusterConfig(
        **{
            **of_config,
            "mode": modes[-1] if modes else config.mode,
            "target": target,
            "platform": replace(platform, cluster=None if identity == EVERYWHERE else identity),
            "namespaces": namespaces,
            "exemptions": (*config.exemptions, *(exemption for entry in entries for exemption in entry.exemptions)),
        },
        file=config,
        applied=applied,
    )


def _identity(of_file: ClusterIdentity | None, of_caller: ClusterIdentity | None) -> ClusterIdentity | None:
    """Merge what the configuration and the caller say of the cluster; None if both say nothing."""
    if of_file is None or of_caller is None:
        return of_caller or of_file
    return ClusterIdentity(
        name=of_caller.name or of_file.name,
        region=of_caller.region or of_file.region,
        labels={**of_file.labels, **of_caller.labels},
    )


def labels_of(cluster: ClusterIdentity) -> Mapping[str, str]:
    """Return what selectors match: the labels of a cluster, and its name and region."""
    own = {"name": cluster.name, "region": cluster.region}
    return {**cluster.labels, **{key: value for key, value in own.items() if value is not None}}


def unmatched(entry: ClusterEntry, labels: Mapping[str, str]) -> str:
    """Return the first label that does not match; empty if the entry applies."""
    for label, wanted in entry.match.items():
        patterns = (wanted,) if isinstance(wanted, str) else wanted
        if label not in labels or not any(formats.matches(pattern, labels[label]) for pattern in patterns):
            return label
    return ""


def _set(section: msgspec.Struct) -> dict[str, object]:
    """Return what a section sets."""
    values = {field.name: getattr(section, field.name) for field in fields(section)}
    return {name: value for name, value in values.items() if value is not msgspec.UNSET}


def source_of(config: PolicyConfig, path: Path) -> Path:
    """Return the path in the file of a value of a configuration that holds in a cluster."""
    if not isinstance(config, ClusterConfig) or not path:
        return path
    if path[0] == "exemptions" and len(path) > 1:
        return (*_exemption(config, int(path[1])), *path[2:])
    for layer in reversed(layers_of(config)[1:]):
        if _is_set(layer.section, path):
            return (*layer.path, *path)
    return path


def _exemption(config: ClusterConfig, index: int) -> Path:
    of_file = len(config.file.exemptions)
    if index < of_file:
        return ("exemptions", index)
    placed = _placed(config)
    return next(path for position, path in enumerate(placed, of_file) if position == index)


def _placed(config: ClusterConfig) -> Iterator[Path]:
    for applied in config.applied:
        for index, _ in enumerate(config.file.clusters[applied].exemptions):
            yield ("clusters", applied, "exemptions", index)


def _is_set(section: object, path: Iterable[object]) -> bool:
    """Tell whether a section of a cluster sets the value at a path of keys."""
    value = section
    for part in path:
        value = value.get(part) if isinstance(value, dict) else getattr(value, str(part), None)
        if value is None or value is msgspec.UNSET or value in ({}, ()):
            return False
    return True
