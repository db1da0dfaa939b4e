"""Whatever the values are, Helm and `gpugate generate manifests` refuse them both, or both make the same objects of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import tools
import yaml
from chart.conftest import CHART, NAMESPACE, Helm
from chart_values import RELEASES, VALUES
from hypothesis import HealthCheck, given, settings

from gpugate.policies.engine.config import ConfigError
from gpugate.webhook.generate.chart.manifests import default_values, manifests, merged

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]
# Each example starts a program.
few = settings(
    max_examples=settings().max_examples // 8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module", params=["helm", "helm3"])
def helm(request: pytest.FixtureRequest) -> Helm:
    return Helm(tools.path(request.param))


def key(obj: Json) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def ours(values: Json, release: str) -> dict[tuple[str, str, str], Json] | None:
    try:
        return {key(each): each for each in manifests(merged(values, default_values()), release, NAMESPACE)}
    except ConfigError:
        return None


def helms(helm: Helm, file: Path, values: Json, release: str) -> dict[tuple[str, str, str], Json] | str:
    # JSON is YAML in which nothing is read as something else.
    file.write_text(json.dumps(values, ensure_ascii=False))
    ran = helm.ran("template", release, CHART, "--namespace", NAMESPACE, "--values", file)
    if ran.returncode:
        return ran.stderr
    rendered = (each for each in yaml.load_all(ran.stdout, yaml.CSafeLoader) if each)
    return {key(each): each for each in rendered if "helm.sh/hook" not in (each["metadata"].get("annotations") or {})}


@few
@given(values=VALUES)
def test_both_ways_make_the_same_of_values(helm: Helm, tmp_path: Path, values: Json) -> None:
    theirs = helms(helm, tmp_path / "values.yaml", values, "gate")

    assert ours(values, "gate") == (None if isinstance(theirs, str) else theirs), theirs


@few
@given(release=RELEASES)
def test_both_ways_call_a_release_the_same(helm: Helm, tmp_path: Path, release: str) -> None:
    theirs = helms(helm, tmp_path / "values.yaml", {}, release)

    assert ours({}, release) == theirs
