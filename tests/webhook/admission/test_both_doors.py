"""Every example gets the same verdict from `check` and over the socket."""

from __future__ import annotations

import base64
import datetime as dt
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.check.examples import Example, read_example
from gpugate.webhook.check.facts import RunFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.engine.verdict import Verdict

ROOT = Path(gpugate.policies.__file__).parent
FILES = sorted(ROOT.glob("*/examples/*/*.yaml"))
SERVER = Path(__file__).with_name("example_server.py")
WORDS = {Stance.ENFORCE: "denied", Stance.WARN: "warned", Stance.AUDIT: "recorded"}


@pytest.fixture(scope="module")
def webhook(start_process: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    ca_file = tmp_path_factory.mktemp("examples") / "ca.crt"
    return start_process([sys.executable, str(SERVER), str(ca_file)], ca_file)


def by_check(example: Example) -> Verdict:
    request = with_defaults(example.request)
    facts = RunFacts((*example.context, example.request), complete=example.complete)
    day = dt.date(2026, 11, 21)
    return evaluate(bind(CATALOG, example.config), request, facts, today=day, phase=Phase.BOTH)


def review(name: str, example: Example, obj: object) -> dict[str, Any]:
    """What the API server would send of the example, defaults filled in."""
    request = with_defaults(example.request)
    kind = {"group": request.kind.group, "version": request.kind.version, "kind": request.kind.kind}
    resource = {"group": request.kind.group, "version": request.kind.version, "resource": request.kind.kind.lower()}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": name,
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": request.name,
            "namespace": request.namespace,
            "operation": str(request.operation),
            "userInfo": {"username": request.user},
            "object": obj,
            "oldObject": request.old_object,
            "dryRun": False,
        },
    }


def annotated(verdict: Verdict) -> dict[str, set[str]]:
    """What the audit annotations must say: findings in a template are at most warnings at admission."""
    said: dict[str, set[str]] = {}
    for finding in verdict.findings:
        stance = min(finding.stance, Stance.WARN) if finding.template_of else finding.stance
        said.setdefault(WORDS[stance], set()).add(finding.policy)
    for policy, _ in verdict.patches:
        said.setdefault("patched", set()).add(policy)
    return said


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)).replace("/examples", ""))
def test_check_and_webhook_agree(file: Path, webhook: Any) -> None:
    name = str(file.relative_to(ROOT))
    example = read_example(name, file.read_text())
    expected = by_check(example)

    mutating = webhook.mutate(review(name, example, with_defaults(example.request).object))
    operations = json.loads(base64.b64decode(mutating["patch"])) if "patch" in mutating else []
    stored = jsonpatch.apply_patch(with_defaults(example.request).object, operations)
    validating = webhook.validate(review(name, example, stored))

    said: dict[str, set[str]] = {}
    for answer in (mutating, validating):
        for word, policies in answer.get("auditAnnotations", {}).items():
            if word != "skipped":
                said.setdefault(word, set()).update(policies.split(","))
    assert stored == (expected.object or with_defaults(example.request).object)
    assert said == annotated(expected)
    assert mutating["allowed"] is True
    assert validating["allowed"] is not bool(annotated(expected).get("denied"))
