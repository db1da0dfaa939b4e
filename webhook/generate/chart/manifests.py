"""The objects of the chart without Helm, from the same description."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import API_VERSION, KIND, ConfigError, parse, parse_config
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.generate.chart.dashboard import dashboard
from gpugate.webhook.generate.chart.evaluation import Scope, evaluate
from gpugate.webhook.generate.chart.guards import GUARDS
from gpugate.webhook.generate.chart.monitoring import DASHBOARD
from gpugate.webhook.generate.chart.names import NAMED
from gpugate.webhook.generate.chart.objects import objects
from gpugate.webhook.generate.chart.terms import ABSENT
from gpugate.webhook.generate.chart.value_docs import needed
from gpugate.webhook.generate.chart.value_types import NAMESPACE_NAME, OWN_NAME
from gpugate.webhook.generate.chart.values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.policies.sdk.platform import Platform

_Json = Any  # Any: the JSON edge

_POLICY: Final = "policy"
_OWN_NAME: Final = re.compile(OWN_NAME)
_NAMESPACE_NAME: Final = re.compile(NAMESPACE_NAME)


def merged(given: _Json, over: _Json) -> _Json:
    """Return values over others as Helm lays them: member by member, and null takes a default away."""
    if not isinstance(given, dict) or not isinstance(over, dict):
        return given
    kept = {key: value for key, value in over.items() if key not in given}
    laid = {key: merged(value, over.get(key)) for key, value in given.items() if value is not None}
    return {**kept, **laid}


def default_values() -> dict[str, _Json]:
    """Return what `values.yaml` says."""
    found: dict[str, _Json] = msgspec.to_builtins(Values())
    return found


def manifests(values: Mapping[str, _Json], name: str, namespace: str) -> Iterator[dict[str, _Json]]:
    """Yield the objects for `kubectl apply`, those that others need first.

    Args:
        values: the chart's values, whole.
        name: of the release, by which objects are called.
        namespace: where the webhook runs.

    Raises:
        ConfigError: the values are refused; its path is where in them.
    """
    _refuse_mistakes(values)
    release = {"Name": name, "Namespace": namespace, "IsInstall": True}
    scope = Scope(values, release, NAMED, {DASHBOARD: dashboard()})
    for guard in GUARDS:
        if evaluate(guard.refused, scope):
            raise ConfigError((), guard.reason)
    for described in objects().values():
        for each in described:
            yield from _flat(evaluate(each, scope))


def _refuse_mistakes(values: Mapping[str, _Json]) -> None:
    for path in _missing(Values(), values, ()):
        raise ConfigError(path, "null takes away what must be there")
    parse(values, Values, ())
    try:
        config = parse_config({"apiVersion": API_VERSION, "kind": KIND, **values[_POLICY]})
        bind(CATALOG, config)
    except ConfigError as error:
        raise ConfigError((_POLICY, *error.path), error.message) from None
    for where, name in _own_names(config.platform):
        if not _OWN_NAME.match(name):
            raise ConfigError((_POLICY, "platform", *where), "has characters that no name has, nor a pattern of names")
    for number, namespace in enumerate(config.excluded_namespaces):
        if not _NAMESPACE_NAME.match(namespace):
            raise ConfigError((_POLICY, "excluded_namespaces", number), "is no name of a namespace; patterns are none")


def _own_names(platform: Platform) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield what is written into match conditions, with where it stands."""
    for resource, taints in platform.taints.items():
        for number, taint in enumerate(taints):
            yield ("taints", resource, number, "key"), taint.key
    for key in ("resources", "device_classes"):
        for number, name in enumerate(getattr(platform.accelerators, key)):
            yield ("accelerators", key, number), name


def _missing(section: msgspec.Struct, given: _Json, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield where a value is missing that every template counts on."""
    for field in msgspec.structs.fields(section):
        here = (*path, field.encode_name)
        default = getattr(section, field.name)
        if field.encode_name not in given:
            yield from (here,) if field.encode_name in needed(type(section)) else ()
        elif isinstance(default, msgspec.Struct) and isinstance(given[field.encode_name], dict):
            yield from _missing(default, given[field.encode_name], here)


def _flat(made: _Json) -> Iterator[dict[str, _Json]]:
    if isinstance(made, list):
        for each in made:
            yield from _flat(each)
    elif made is not ABSENT:
        yield made
