"""What a report prints of files that strangers write: no secrets, and no command that a CI system obeys."""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.objects import DEPLOYMENT, POD, Kind
from gpugate.policies.sdk.policy import AnyContext, Policy, validates
from gpugate.webhook.check.flags import FORMATS, ReportWriter
from gpugate.webhook.check.options import Options
from gpugate.webhook.check.run import check
from gpugate.webhook.manifests.inputs import expand
from gpugate.webhook.report.plain import plain
from gpugate.webhook.report.view import View

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpugate.policies.sdk.field import Field

KINDS = [POD, DEPLOYMENT, Kind("", ("v1",), "Secret", "secrets")]
CANARY = "hunter2/Canary"


@validates(*KINDS)
def _everywhere(root: Field, _: AnyContext) -> Iterator[Violation]:
    left = [root]
    while left:
        field = left.pop()
        left += [*field, *field.members()]
        yield Violation(field.path, "is wrong")


POLICIES = [
    Policy("pods/everywhere", "Thing that is wrong everywhere.\n\n## Why is this bad?\nIt is.\n", (_everywhere,))
]


def outputs(folder: Path, name: str, text: str) -> dict[str, str]:
    """Return what every format prints of a file, in which each place is reported."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / name).write_text(text)
    known = frozenset(policy.id for policy in POLICIES)
    options = Options(dt.date(2026, 1, 1), known=known)
    result = check(list(expand([str(folder)])), bind(POLICIES, PolicyConfig()), options)
    shown = ReportWriter(result.report, POLICIES, View(seconds=0.1, suppressed=True))
    return {each: shown.write(each, "") for each in FORMATS}


def _pod(value: Any) -> dict[str, Any]:
    env = [{"name": "A", "value": value}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
    return {"containers": [{"name": "a", "image": "b", "env": env, "args": ["c"]}], "nodeName": "d"}


def _objects(value: Any) -> list[dict[str, Any]]:
    last_applied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"a": value})}
    named = {"name": "a", "annotations": {"b": "c", **last_applied}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": _pod(value)}
    template = {"spec": {"template": {"spec": _pod(value)}}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    return [
        pod,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, **template},
        {**secret, "data": {"a": value, "b": "c"}, "stringData": {"config": f"first\n{value}\nlast: {value}\n"}},
        {"apiVersion": "v1", "kind": "List", "items": [{**secret, "stringData": {"a": value}}, pod]},
    ]


def _block(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False)


def _flow(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, default_flow_style=True, width=60)


STYLES = (_block, _flow, json.dumps, lambda value: json.dumps(value, indent=1))
# What makes a document unreadable, ambiguous or cut short.
BREAKS = (
    "\tx\n",
    "a: b: c\n",
    "- }\n",
    "x: &a [*a]\n",
    "x: !y z\n",
    "kind: &k\n",
    "# gpugate: ignore[pods/x]\n",
)


@st.composite
def _written(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(STYLES))(draw(st.sampled_from(_objects(CANARY))))
    lines = text.splitlines(keepends=True)
    for _ in range(draw(st.integers(0, 2))):
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(BREAKS)))
    text = "".join(lines)
    return text[: draw(st.integers(len(text) // 2, len(text)))] if draw(st.booleans()) else text


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_written(), st.sampled_from(["a.yaml", "a.json"]))
def test_no_format_prints_data_of_secrets_or_values_of_variables(tmp_path: Path, text: str, name: str) -> None:
    for output in outputs(tmp_path / "of", name, text).values():
        assert CANARY not in output
        assert "hunter2" not in output


def test_what_is_hidden_keeps_its_columns(tmp_path: Path) -> None:
    text = outputs(tmp_path / "of", "a.yaml", _block(_objects("x y")[0]))["text"]

    assert "      value: * *\n" in text
    assert "    - name: B\n" in text


COMMANDS = ("::error::x", "##[error]x", "##vso[task.setvariable variable=a]x", "##teamcity[x]", "###[x]", "#\u200b#[x]")
hostile = st.builds(
    "{}{}".format, st.sampled_from(["", " ", "\t", "\n", "\r", "a\n  ", "a "]), st.sampled_from(COMMANDS)
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(STYLES), st.sampled_from(["a", "::error::a", "##vso[a]", "a##[error]"]))
def test_no_format_prints_a_command_for_a_ci_system(tmp_path: Path, data: st.DataObject, style: Any, name: str) -> None:
    def some(usual: str) -> str:
        return data.draw(st.just(usual) | hostile)

    metadata = {"name": some("a"), "namespace": some("b"), "labels": {some("c"): some("d")}}
    obj = {
        "apiVersion": some("v1"),
        "kind": some("Pod"),
        "metadata": metadata,
        "spec": {some("e"): [some("f"), {some("g"): 1}]},
    }
    comment = f"# gpugate: ignore[{some('pods/everywhere')}] {some('why')}\n" if style is _block else ""
    for form, output in outputs(tmp_path / "of", f"{name}.yaml", comment + style(obj)).items():
        for line in output.splitlines():
            ours = form == "github" and re.match(r"::(error|warning|notice) file=", line)
            assert ours or not line.strip().startswith("::"), (form, line)
            assert not re.search(r"##\w*\[", line), (form, line)


@pytest.mark.parametrize("command", COMMANDS[:4])
def test_a_text_keeps_its_length(command: str) -> None:
    assert len(plain(f" {command}")) == len(command) + 1
    assert plain("a::b # #[c] ## d") == "a::b # #[c] ## d"
