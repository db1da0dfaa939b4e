"""Demonstrate gpugate: reviews from a real API server, manifests on disk, and an audit of a cluster dump.

Run it with `make demo`. The output fits on two screens of 50 lines of 120 columns. Exits with 1 if a result is unexpected.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recorded_metrics import recorded_metrics
from webhook_process import GPUGATE, running_webhook

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.config import starter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook_process import Webhook

ROOT = Path(__file__).resolve().parents[1]
REVIEWS = ROOT / "tests" / "fixtures" / "reviews"
MANIFESTS = "tests/fixtures/manifests"
POLICY_FILE = "build/policy.yaml"
BRIEF = ("--policy-file", POLICY_FILE, "-o", "concise", "--max-findings", "2")
DUMP = "tests/fixtures/dumps/ml-platform"
REPORT = ROOT / "build" / "audit.html"
WIDTH = 120
MOST_DETAILS = 2
COLOURS = {"denied": 31, "allowed, mutated": 36, "allowed, with a warning": 33, "allowed": 32}
TITLES = {policy.id: policy.title for policy in CATALOG}


@dataclass(frozen=True)
class Scene:
    review: str
    path: str
    what: str
    decision: str


SCENES = (
    Scene(
        "pod-create-gpu-untolerated.mutate",
        "/mutate",
        "a Pod asks for a GPU and forgets the toleration",
        "allowed, mutated",
    ),
    Scene("pod-create-gpu-tolerated.mutate", "/mutate", "the same with the toleration: nothing to add", "allowed"),
    Scene("nodepool-create-unlimited.validate", "/validate", "a GPU pool without a limit", "denied"),
    Scene(
        "nodepool-create-gpu-inference.mutate",
        "/validate",
        "a GPU pool for Spot with little choice of types",
        "allowed, with a warning",
    ),
    Scene("pod-create-by-job.validate", "/validate", "a Job controller's training Pod", "allowed, with a warning"),
    Scene(
        "scaledobject-create.validate",
        "/validate",
        "a ScaledObject that can never leave zero replicas",
        "allowed, with a warning",
    ),
    Scene("pod-update-by-job-controller.mutate", "/mutate", "the Job controller removes its finalizer", "allowed"),
    Scene("pod-delete.validate", "/validate", "deletions are always allowed", "allowed"),
)


def main() -> int:
    surprises = 0
    with running_webhook() as webhook:
        print(bold("1. The webhook:"), webhook.announced[0], end="\n\n")
        print(bold("2. Reviews that kube-apiserver 1.36.3 sent"))
        for scene in SCENES:
            surprises += not play(scene, webhook)
        print(bold("3. The last log line of the webhook"), f"\n   {webhook.last_log_line()}\n", sep="")
    (ROOT / POLICY_FILE).parent.mkdir(exist_ok=True)
    (ROOT / POLICY_FILE).write_text(starter.POLICY_FILE, encoding="utf-8")
    print(bold(f"4. gpugate check {MANIFESTS} {' '.join(BRIEF)}"), flush=True)
    checked = subprocess.run([*GPUGATE, "check", MANIFESTS, *BRIEF], cwd=ROOT, check=False)  # noqa: S603 -- our own program
    print(f"exit code {checked.returncode}: an object would be denied\n")
    print(bold(f"5. gpugate audit --from {DUMP} --prometheus URL"), "(with recorded metrics)", flush=True)
    REPORT.parent.mkdir(exist_ok=True)
    outputs = ["--policy-file", POLICY_FILE, "--top", "5", "-o", "text", "-o", f"html={REPORT}"]
    with recorded_metrics() as url:
        command = [*GPUGATE, "audit", "--from", DUMP, "--prometheus", url, *outputs]
        audited = subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603 -- as above
    print(
        f"exit code {audited.returncode}: findings do not fail an audit without --fail-on\n{bold('The report for a browser:')} {REPORT}"
    )
    return 0 if not surprises and (checked.returncode, audited.returncode) == (1, 0) else 1


def play(scene: Scene, webhook: Webhook) -> bool:
    """Send one review and print the response; return whether the decision is the expected one."""
    review = (REVIEWS / f"{scene.review}.json").read_bytes()
    request = json.loads(review)["request"]
    response = webhook.send(scene.path, review)
    decision = decided(response)
    print(f"   {bold(shown(request))} to {scene.path}: {scene.what}")
    print(f"     {'decision':10}{coloured(decision)}")
    lines = list(details(response))
    for label, text in lines[:MOST_DETAILS]:
        line = f"     {label:10}{text}"
        print(line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}...")
    if len(lines) > MOST_DETAILS:
        print(f"     +{len(lines) - MOST_DETAILS} lines")
    if decision != scene.decision:
        print(f"     {'expected':10}{scene.decision}")
    return decision == scene.decision


def decided(response: dict[str, Any]) -> str:
    if not response["allowed"]:
        return "denied"
    if "patch" in response:
        return "allowed, mutated"
    return "allowed, with a warning" if "warnings" in response else "allowed"


def details(response: dict[str, Any]) -> Iterator[tuple[str, str]]:
    annotations = response.get("auditAnnotations", {})
    for line in response.get("status", {}).get("message", "").splitlines():
        yield "reason", line
    if "patch" in response:
        for policy in annotations["mutate"].split(","):
            yield "reason", f"[{policy}] {TITLES[policy]}"
        for operation in json.loads(base64.b64decode(response["patch"])):
            yield "patch", " ".join((operation["op"], operation["path"], json.dumps(operation.get("value"))))
    for warning in response.get("warnings", ()):
        yield "warning", warning
    if "skip" in annotations:
        yield "skip", f"{annotations['skip']} (no cluster data)"


def shown(request: dict[str, Any]) -> str:
    stored = request["object"] or request["oldObject"]
    metadata = stored["metadata"]
    name = metadata.get("name") or f"{metadata['generateName']}*"
    where = f"{request['namespace']}/{name}" if request.get("namespace") else name
    return f"{request['operation']} {request['kind']['kind']} {where}"


def coloured(decision: str) -> str:
    return styled(decision, COLOURS[decision])


def bold(text: str) -> str:
    return styled(text, 1)


def styled(text: str, code: int) -> str:
    if os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


if __name__ == "__main__":
    sys.exit(main())
