"""Holds values against those that the chart knows."""

from __future__ import annotations

import json
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


def values_mistake(given: dict[str, _Json]) -> str:
    """Return why the chart refuses values laid over its defaults; empty when it takes them.

    `templates/validate.yaml` is not asked: it also looks at the release as a whole, such as `Fail` on a first install.
    """
    # Helm reads dates as text.
    laid = json.loads(json.dumps(given, default=str))
    values = merged(laid, yaml.safe_load((_CHART / "values.yaml").read_text()))
    try:
        _validator()(values)
        shadow = values["policy"].pop("shadow", None) or {}
        for policy in (values["policy"], shadow):
            bind(CATALOG, parse_config({"apiVersion": API_VERSION, "kind": KIND, **policy}))
    except (fastjsonschema.JsonSchemaValueException, GpugateError) as error:
        return str(error)
    return ""


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
