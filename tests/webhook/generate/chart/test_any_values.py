"""Whatever the values are: they are refused with a reason, or each text stands where it belongs and nowhere else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml
from chart_values import RELEASES, TEXTS, VALUES
from hypothesis import given, settings
from hypothesis import strategies as st

from gpugate.policies.engine.config import ConfigError
from gpugate.webhook.generate.chart.manifests import default_values, manifests, merged
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]
DEFAULT = default_values()
# Each example makes every object of the chart.
few = settings(max_examples=30, deadline=None)


def made(values: Mapping[str, Any], release: str = "gate") -> list[Json]:
    return list(manifests(merged(values, DEFAULT), release, "guard"))


@few
@given(VALUES)
def test_values_are_refused_with_a_reason_or_can_be_applied(values: Json) -> None:
    try:
        objects = made(values)
    except ConfigError:
        return
    written = "---\n".join(map(yaml_text.block, objects))
    assert list(yaml.load_all(written, yaml.CSafeLoader)) == objects


@few
@given(st.lists(TEXTS), TEXTS)
def test_a_text_stays_what_it_is(arguments: list[str], note: str) -> None:
    (deployment,) = (
        each
        for each in made({"server": {"arguments": arguments}, "pods": {"annotations": {"note": note}}})
        if each["kind"] == "Deployment"
    )
    template = deployment["spec"]["template"]

    assert template["spec"]["containers"][0]["args"][-len(arguments) or 99 :] == arguments
    assert template["metadata"]["annotations"]["note"] == note


@few
@given(TEXTS)
def test_nothing_of_a_platform_ends_a_match_condition(name: str) -> None:
    platform = {"taints": {"*": [{"key": name}]}, "accelerators": {"resources": [name], "device_classes": [name]}}
    try:
        made({"policy": {"platform": platform}})
    except ConfigError:
        return
    assert re.fullmatch(r"[A-Za-z0-9./_*-]+", name)


@few
@given(RELEASES)
def test_every_name_is_one_that_the_api_server_takes(release: str) -> None:
    objects = made({"hooks": {"cleanup": {"enabled": False}}}, release)
    names = {(each["kind"], each["metadata"]["name"]) for each in objects}

    assert {name for _, name in names if not re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name)} == set()
    # The name of a Job adds eleven characters to that of its CronJob (`k8s.io/kubernetes` pkg/apis/batch/validation, v1.36).
    assert [name for kind, name in names if kind == "CronJob" and len(name) > 52] == []
