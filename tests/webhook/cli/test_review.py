from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.verdict import Finding, Outcome, Verdict
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission import review_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: server
  labels: {team: ml, cost-center: cc-1}
spec:
  containers:
    - name: main
      image: registry.example.org/server:1.0
      resources: {limits: {nvidia.com/gpu: 1}}
"""


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    file = tmp_path / "pod.yaml"
    file.write_text(POD)
    return file


def test_a_pod_is_shown_as_it_would_be_stored(gpugate: Run, pod: Path) -> None:
    ran = gpugate("review", pod, "--as", "developer", "-n", "serving")

    assert ran.code == 0
    assert ran.out.splitlines() == [
        "ALLOWED, mutated: CREATE of Pod server in serving by developer",
        (
            "  mutate [pods/missing-gpu-toleration] adds the toleration nvidia.com/gpu:NoSchedule, "
            "the usual taint of nodes with nvidia.com/gpu"
        ),
        "         append to spec.tolerations: {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}",
        "",
        "--- Pod/server as sent",
        "+++ Pod/server as stored",
        "@@ -16,3 +16,7 @@",
        '           nvidia.com/gpu: "1"',
        "   restartPolicy: Always",
        "   terminationGracePeriodSeconds: 30",
        "+  tolerations:",
        "+    - key: nvidia.com/gpu",
        "+      operator: Exists",
        "+      effect: NoSchedule",
    ]


def test_the_patch_is_rfc_6902(gpugate: Run, pod: Path) -> None:
    document = json.loads(gpugate("review", pod, "-o", "json").out)

    toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert document["allowed"] is True
    assert document["patch"] == [{"op": "add", "path": "/spec/tolerations", "value": [toleration]}]
    assert document["object"]["spec"]["tolerations"] == [toleration]


def test_a_denied_object_is_exit_1(gpugate: Run, manifests: Path) -> None:
    ran = gpugate("review", manifests / "nodepool-gpu-training-protected.yaml")

    assert (ran.code, ran.out.splitlines()[0]) == (1, "DENIED: CREATE of NodePool gpu-training-protected")


def test_an_unchanged_update_is_only_warned_about(gpugate: Run, manifests: Path) -> None:
    file = manifests / "nodepool-gpu-training-protected.yaml"

    ran = gpugate("review", file, "--old", file)

    assert (ran.code, ran.out.splitlines()[0]) == (0, "ALLOWED: UPDATE of NodePool gpu-training-protected")


def test_a_deletion_is_allowed(gpugate: Run, manifests: Path) -> None:
    ran = gpugate("review", manifests / "nodepool-gpu-training-protected.yaml", "--operation", "DELETE")

    assert (ran.code, ran.out) == (0, "ALLOWED: DELETE of NodePool gpu-training-protected\n")


def test_an_admission_review_says_everything_itself(gpugate: Run, reviews: Path) -> None:
    ran = gpugate("review", reviews / "pod-create-gpu-untolerated.mutate.json")

    assert (ran.code, ran.out.split(" ")[:3]) == (0, ["ALLOWED,", "mutated:", "CREATE"])


PROBLEMS: dict[str, tuple[list[str], int, str]] = {
    "not YAML": (
        ["unclosed-quote.yaml"],
        4,
        "unclosed-quote.yaml:4:9: not YAML: found unexpected end of stream: close",
    ),
    "no object": (["list-at-the-top.yaml"], 4, "list-at-the-top.yaml:1:1: not a Kubernetes object but a list: begin"),
    "several": (
        ["../manifests/nodepools-gpu-tiers.yaml"],
        4,
        "../manifests/nodepools-gpu-tiers.yaml: contains 3 documents",
    ),
    "missing": (["nowhere.yaml"], 4, "nowhere.yaml: no such file or directory: check"),
    "an update without the old object": (
        ["../manifests/nodepool-multi-arch.yaml", "--operation", "UPDATE"],
        2,
        "an UPDATE needs --old FILE, and other operations do not accept it",
    ),
    "an old object without an update": (
        [
            "../manifests/nodepool-multi-arch.yaml",
            "--operation",
            "DELETE",
            "--old",
            "../manifests/nodepool-multi-arch.yaml",
        ],
        2,
        "an UPDATE needs --old FILE, and other operations do not accept it",
    ),
    "flags against a review": (
        ["../reviews/pod-delete.validate.json", "--as", "developer"],
        2,
        "an AdmissionReview contains operation, old object, user and namespace: remove the flags",
    ),
}


@pytest.mark.parametrize(("arguments", "code", "message"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_cannot_be_reviewed_is_one_line(
    arguments: list[str], code: int, message: str, gpugate: Run, broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(broken)

    ran = gpugate("review", *arguments)

    assert (ran.code, ran.err.startswith(f"error: {message}"), ran.err.count("\n")) == (code, True, 1)


def test_an_object_is_read_from_standard_input(gpugate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(POD.encode())))

    ran = gpugate("review", "-")

    assert (ran.code, ran.out.splitlines()[0]) == (0, "ALLOWED, mutated: CREATE of Pod server in default")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("# nothing\n", "contains 0 documents: review accepts one, check accepts many", id="empty"),
        pytest.param(f"{POD}---\n{POD}", "contains 2 documents: review accepts one, check accepts many", id="two"),
        pytest.param(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "List",
                    "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}] * 2,
                }
            ),
            "contains 2 objects: review accepts one, check accepts many",
            id="list",
        ),
        pytest.param(
            '{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}',
            "the AdmissionReview has no request",
            id="review",
        ),
    ],
)
def test_a_file_has_one_object(gpugate: Run, pod: Path, content: str, message: str) -> None:
    pod.write_text(content)

    ran = gpugate("review", pod)

    assert (ran.code, ran.err) == (4, f"error: {pod}: {message}\n")


EXEMPT = """\
apiVersion: gpugate.dev/v1
kind: PolicyConfig
exemptions:
  - policies: [nodepools/*]
    groups: [platform]
    reason: the platform team tests pools
    owner: platform
    expires: 2099-01-01
"""


@pytest.mark.parametrize(("groups", "code"), [(["dev"], 1), (["dev", "platform"], 0)], ids=["others", "exempt"])
def test_an_exemption_for_a_group(gpugate: Run, manifests: Path, tmp_path: Path, groups: list[str], code: int) -> None:
    (tmp_path / "policy.yaml").write_text(EXEMPT)
    flags = [flag for group in groups for flag in ("--as-group", group)]

    ran = gpugate("review", manifests / "nodepool-gpu-training-protected.yaml", "-p", tmp_path / "policy.yaml", *flags)

    assert ran.code == code


REQUEST = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, {})


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict(REQUEST), 0),
        (Verdict(REQUEST, (Outcome("a/b", Stance.WARN, (Finding("a/b", (), "m", Stance.WARN),)),)), 0),
        (Verdict(REQUEST, (Outcome("a/b", Stance.ENFORCE, (Finding("a/b", (), "m", Stance.ENFORCE),)),)), 1),
        (Verdict(REQUEST, malformed=(Violation((), "m"),)), 1),
        (Verdict(REQUEST, (Outcome("a/b", Stance.AUDIT, error="KeyError"),)), 4),
        (Verdict(REQUEST, (Outcome("a/b", Stance.AUDIT, error="KeyError"),), (Violation((), "m"),)), 1),
    ],
    ids=["passed", "warned", "denied", "malformed", "a failed policy", "malformed, and a failed policy"],
)
def test_the_exit_code_of_a_verdict(verdict: Verdict, code: int) -> None:
    assert review_command._exit_code(verdict) == code
