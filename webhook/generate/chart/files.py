"""The files of the chart, but for what is written by hand: NOTES.txt, .helmignore and the values that tests try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate import __version__
from gpugate.webhook.generate.chart.dashboard import dashboard
from gpugate.webhook.generate.chart.go_template import action, expression, named_template, template
from gpugate.webhook.generate.chart.guards import GUARDS
from gpugate.webhook.generate.chart.monitoring import DASHBOARD
from gpugate.webhook.generate.chart.names import NAMED
from gpugate.webhook.generate.chart.objects import helm_objects, objects
from gpugate.webhook.generate.chart.values_file import values_file
from gpugate.webhook.generate.chart.values_schema import values_schema
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.webhook.generate.chart.terms import Node

_WRITTEN: Final = "{{- /* Written by `make generate` from webhook/generate/chart. */ -}}\n"
# The first with match conditions that are on without being asked for, and with a sleep before a container ends.
_KUBERNETES: Final = ">=1.30.0-0"


def chart_files() -> Mapping[str, str]:
    """Return path within the chart -> text."""
    templates = {**objects(), **helm_objects()}
    return {
        "Chart.yaml": _chart(),
        "values.yaml": values_file(),
        "values.schema.json": values_schema(),
        DASHBOARD: dashboard(),
        "templates/_helpers.tpl": _WRITTEN + "".join(named_template(*each) for each in NAMED.items()),
        "templates/validate.yaml": _WRITTEN + "".join(_guard(each.refused, each.reason) for each in GUARDS),
        **{f"templates/{name}.yaml": _WRITTEN + template(each) for name, each in templates.items()},
    }


def _guard(refused: Node, reason: str) -> str:
    return f"{{{{- if {action(refused)} }}}}\n{{{{- fail {expression(reason)} }}}}\n{{{{- end }}}}\n"


def _chart() -> str:
    return yaml_text.block(
        {
            "apiVersion": "v2",
            "name": "gpugate",
            "description": "Admission webhook for GPU platforms on Karpenter, KEDA and DRA",
            "type": "application",
            "version": __version__,
            "appVersion": __version__,
            "kubeVersion": _KUBERNETES,
            "keywords": ["admission", "gpu", "karpenter", "keda", "dra", "policy"],
            "annotations": {"artifacthub.io/category": "security", "artifacthub.io/containsSecurityUpdates": "false"},
        }
    )
