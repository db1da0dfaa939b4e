"""Captures again, from a real API server, the AdmissionReviews that the tests without one use: `make capture-reviews`.

A webhook that allows everything records them while kubectl, controllers and scheduler are at work. Tells of each file which
members came and went.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from capture.picks import PICKS
from capture.shape import shape
from cluster.api import Api
from cluster.connections import Connections
from cluster.control_plane import running_control_plane
from cluster.custom_resources import definitions, install
from stub_webhook.registration import configuration, rule
from stub_webhook.server import Stub

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.control_plane import ControlPlane

Json = dict[str, Any]
ROOT = Path(__file__).parents[1]
MANIFESTS = ROOT / "tests" / "fixtures" / "manifests"
REVIEWS = ROOT / "tests" / "fixtures" / "reviews"
PHASES = {"mutate": "mutating", "validate": "validating"}
PATIENCE_SECONDS = 60
RULES = (
    *(rule(f"pods{part}", "*") for part in ("", "/binding", "/ephemeralcontainers", "/exec", "/status")),
    rule("deployments", "*", group="apps"),
    rule("horizontalpodautoscalers", "*", group="autoscaling", version="v2"),
    *(rule(f"nodepools{part}", "*", group="karpenter.sh") for part in ("", "/scale")),
    rule("ec2nodeclasses", "*", group="karpenter.k8s.aws"),
    rule("scaledobjects", "*", group="keda.sh", version="v1alpha1"),
)
BESIDE = str(ROOT / "e2e" / "capture" / "objects.yaml")
CREATED = (
    "deployment-gpu-inference-server",
    "ec2nodeclass-gpu-optimized",
    "hpa-model-a",
    "job-distributed-training",
    "nodepool-gpu-inference-of-eight-gpu-types",
    "nodepool-gpu-training",
    "nodepool-gpu-training-protected",
    "pod-training-job",
    "scaledobject-vllm",
)
COMMANDS = (
    ("create", "-f", BESIDE),
    *(("create", "-f", str(MANIFESTS / f"{name}.yaml")) for name in CREATED),
    ("create", "-f", str(MANIFESTS / "scaledobject-model-a.yaml"), "--dry-run=server"),
    ("patch", "nodepool", "gpu-training", "--type=merge", '--patch={"spec": {"weight": 91}}'),
    ("scale", "nodepool", "gpu-static", "--replicas=20"),
    ("delete", "nodepool", "gpu-training"),
    ("wait", "pod/gpu-pod", "--for=condition=Ready", f"--timeout={PATIENCE_SECONDS}s"),
    ("debug", "gpu-pod", "--image=busybox", "--target=c", "--", "sh"),
    # There is no container, so it fails, after the API server has asked.
    ("exec", "gpu-pod", "--container=c", "--", "true"),
    ("delete", "pod", "gpu-pod-untolerated", "--force", "--grace-period=0"),
)
MAY_FAIL = {"exec"}


def main() -> int:
    with (
        TemporaryDirectory(prefix="gpugate-capture-") as name,
        running_control_plane(Path(name) / "cluster") as plane,
        recording(plane, Path(name)) as stub,
    ):
        for command in COMMANDS:
            run(plane, Path(name), command)
        captured = wait_for_all(stub)
    for file, review in captured.items():
        print(file, *differences(REVIEWS / file, review), sep="\n  ")
        (REVIEWS / file).write_text(json.dumps(review, indent=1), encoding="utf-8")
    return 0


@contextmanager
def recording(plane: ControlPlane, folder: Path) -> Iterator[Stub]:
    """Register a webhook that keeps what it is sent, with the kinds of which reviews are captured."""
    with closing(Connections(plane.url, plane.ca_file, plane.admin)) as connections, Stub(folder) as stub:
        api = Api(connections)
        install(api, definitions(ROOT / "policies"))
        for path, phase in PHASES.items():
            hook = {
                "name": f"{path}.capture.gpugate.dev",
                "clientConfig": {"url": f"{stub.url}/{path}", "caBundle": stub.authority.bundle},
                "rules": list(RULES),
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
            answer = api.create(configuration(phase, "capture", [hook]))
            assert answer.ok, answer.message
        probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": "default"}}
        probe["spec"] = {"containers": [{"name": "c", "image": "x"}]}
        until(lambda: api.create(probe, dry_run=True) and all(stub.asked(f"/{path}") for path in PHASES))
        yield stub


def run(plane: ControlPlane, home: Path, command: tuple[str, ...]) -> None:
    """Run kubectl as the administrator."""
    kubectl = [str(tools.path("kubectl")), f"--kubeconfig={plane.admin_kubeconfig}", f"--cache-dir={home / 'cache'}"]
    ran = subprocess.run([*kubectl, *command], capture_output=True, text=True, check=False)  # noqa: S603 -- ours
    if ran.returncode and command[0] not in MAY_FAIL:
        sys.exit(f"error: kubectl {' '.join(command)}: {ran.stderr.strip()}")


def wait_for_all(stub: Stub) -> dict[str, Json]:
    """Return a review for each file there is, once there is one for each."""
    files = sorted(file.name for file in REVIEWS.glob("*.json"))
    captured: dict[str, Json] = {}

    def found() -> bool:
        captured.update({file: review for file in files if (review := first(stub, file))})
        return len(captured) == len(files)

    until(found, lambda: f"no review for {sorted(set(files) - set(captured))}")
    return captured


def first(stub: Stub, file: str) -> Json | None:
    name, phase, _ = file.split(".")
    for call in stub.asked(f"/{phase}"):
        if PICKS[name].fits(call.request):
            review: Json = json.loads(call.body)
            return review
    return None


def differences(file: Path, review: Json) -> list[str]:
    """Say which members a review has that the one in the file has not, and the reverse."""
    before, now = shape(json.loads(file.read_bytes())), shape(review)
    return [f"+ {path}" for path in sorted(now - before)] + [f"- {path}" for path in sorted(before - now)]


def until(condition: Any, otherwise: Any = lambda: "the webhook was not asked") -> None:
    """Wait until something is so, or end with an error."""
    latest = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > latest:
            sys.exit(f"error: {otherwise()}")
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
