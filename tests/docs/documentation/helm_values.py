"""Holds values against those that the chart knows."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import fastjsonschema
import yaml

from documentation.blocks import ROOT
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import API_VERSION, KIND, GpugateError, parse_config
from gpugate.policies.engine.ruleset import bind

if TYPE_CHECKING:
    from collections.abc import Callable

_Json = Any  # Any: what JSON holds
_CHART: Final = ROOT / "charts" / "gpugate"
_VARIABLE: Final = re.compile(r"\{\{[^}]*\}\}|\$\{[^}]*\}")


def values_mistake(given: dict[str, _Json]) -> str:
    """Return why the chart refuses values laid over its defaults; empty when it takes them.

    `templates/validate.yaml` is not asked: it also looks at the release as a whole, such as `Fail` on a first install.
    """
    # Helm reads dates as text.
    laid = json.loads(json.dumps(given, default=str))
    values = merged(laid, yaml.safe_load((_CHART / "values.yaml").read_text()))
    try:
        _validator()(values)
        values["policy"].pop("bundle", None)
        shadow = values["policy"].pop("shadow", None) or {}
        for policy in (values["policy"], shadow):
            bind(CATALOG, parse_config({"apiVersion": API_VERSION, "kind": KIND, **policy}))
    except (fastjsonschema.JsonSchemaValueException, GpugateError) as error:
        return str(error)
    return ""


def delivered_values(manifest: dict[str, _Json]) -> dict[str, _Json] | None:
    """Return the values of the chart in an object that delivers it with Argo CD or Flux; None if it delivers nothing.

    Variables of ApplicationSets (`{{...}}`) and of Kustomizations (`${...}`) are replaced, as in each cluster.
    """
    spec = manifest.get("spec") or {}
    match manifest["kind"]:
        case "ApplicationSet":
            values = spec["template"]["spec"]["source"]["helm"]["valuesObject"]
        case "Application":
            values = spec["source"]["helm"]["valuesObject"]
        case "HelmRelease":
            values = spec["values"]
        case _:
            return None
    replaced: dict[str, _Json] = json.loads(_VARIABLE.sub("gpu-1", json.dumps(values)))
    return replaced


def merged(given: _Json, over: _Json) -> _Json:
    """Return values over others as Helm lays them: member by member, and null takes a default away."""
    if not isinstance(given, dict) or not isinstance(over, dict):
        return given
    kept = {key: value for key, value in over.items() if key not in given}
    laid = {key: merged(value, over.get(key)) for key, value in given.items() if value is not None}
    return {**kept, **laid}


@cache
def _validator() -> Callable[[_Json], _Json]:
    compiled: Callable[[_Json], _Json] = fastjsonschema.compile(json.loads((_CHART / "values.schema.json").read_text()))
    return compiled
