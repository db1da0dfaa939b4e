"""What the image holds, run as Kubernetes would run it: its user, no capabilities, a read-only root, a folder in memory."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cluster.certificates import Certificates
from cluster.connections import Connections
from cluster.service_account import NAMESPACE, grant, made_account
from image.container import TEMPORARY, Container
from image.proof import ROOT, TREE
from image.running import running

from gpugate.webhook.admission.policy_reload import load_rules
from image import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api
    from cluster.control_plane import ControlPlane
    from image.container import Image
    from image.running import Running

REVIEW = ROOT / "tests/fixtures/reviews/nodepool-create.validate.json"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
CERTIFICATE, KEY = "/etc/gpugate/tls/tls.crt", "/etc/gpugate/tls/tls.key"
USER = "65532"
NO_CAPABILITIES = {f"Cap{kind}": "0" * 16 for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")}


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    folder = tmp_path / "certificates"
    folder.mkdir()
    return Certificates(folder)


@pytest.fixture
def container(certificates: Certificates) -> Container:
    """The image's own command line; free ports and a certificate come by environment and volume."""
    environment = {"PORT": "0", "HEALTH_PORT": "0", "DRAIN": "0", "TLS_CERT": CERTIFICATE, "TLS_KEY": KEY}
    files = {CERTIFICATE: certificates.server.certificate, KEY: certificates.server.key}
    return Container(
        environment={f"GPUGATE_{name}": value for name, value in environment.items()}, files=_readable(files)
    )


@pytest.fixture
def started(
    image: Image, container: Container, certificates: Certificates, tmp_path: Path, figures: list[str]
) -> Iterator[Running]:
    with running(image, container, certificates.authority, tmp_path) as each:
        figures.append(f"image: ready {each.ready_seconds:.1f} s after its process was started")
        yield each


def test_it_answers_a_review(started: Running, certificates: Certificates) -> None:
    review = json.loads(REVIEW.read_bytes())
    with contextlib.closing(Connections(started.url, certificates.authority)) as connections:
        answer = connections.request("POST", "/validate", review)
    assert answer.body["response"]["uid"] == review["request"]["uid"]


def test_none_of_its_processes_has_or_gets_a_privilege(started: Running) -> None:
    for process in _processes(started.process.pid):
        status = _status(process)
        assert {name: status[name] for name in NO_CAPABILITIES} == NO_CAPABILITIES
        assert status["NoNewPrivs"] == "1"


def test_its_processes_are_those_of_its_user(image: Image, started: Running) -> None:
    # Where others than root run this, their own id stands for it outside of the namespace.
    inside = {
        Path(f"/proc/{pid}/uid_map").read_text(encoding="utf-8").split()[0] for pid in _processes(started.process.pid)
    }
    outside = {_status(pid)["Uid"].split()[0] for pid in _processes(started.process.pid)}
    assert image.stage.last("USER") == (f"{USER}:{USER}",)
    assert USER in inside | outside


def test_it_can_write_to_its_temporary_folder_only(started: Running) -> None:
    mounts = Path(f"/proc/{started.process.pid}/mountinfo").read_text(encoding="utf-8").splitlines()
    writable = {fields[4] for fields in map(str.split, mounts) if "rw" in fields[5].split(",")}
    assert {path for path in writable if not path.startswith("/proc/")} == {TEMPORARY}


def test_it_writes_nothing_where_it_is_installed(image: Image, started: Running) -> None:
    before = tree.listing(image.contents / TREE)
    started.process.stop()
    assert tree.listing(image.contents / TREE) == before


def test_it_leaves_when_it_is_asked_to(started: Running) -> None:
    assert started.process.stop() == 0


def test_in_a_cluster_it_uses_the_service_account_of_its_pod(
    image: Image,
    container: Container,
    certificates: Certificates,
    api: Api,
    control_plane: ControlPlane,
    tmp_path: Path,
) -> None:
    account = tmp_path / "account"
    account.mkdir(mode=0o755)
    (account / "token").write_text(made_account(api), encoding="utf-8")
    (account / "ca.crt").write_bytes(control_plane.ca_file.read_bytes())
    (account / "namespace").write_text(NAMESPACE, encoding="utf-8")
    grant(api, load_rules(None).ruleset)
    host, _, port = control_plane.url.removeprefix("https://").rpartition(":")
    in_cluster = dataclasses.replace(
        container,
        environment={**container.environment, "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port},
        files={**container.files, ACCOUNT: account},
    )
    with running(image, in_cluster, certificates.authority, tmp_path) as started:
        # Ready means that everything the policies look up has been read.
        assert started.health.metric("gpugate_reviews_total") == 0


def _readable(files: dict[str, Path]) -> dict[str, Path]:
    """Let the container's user read what only ours may, as a Pod's `fsGroup` does."""
    for file in files.values():
        file.chmod(0o444)
    return files


def _processes(supervisor: int) -> list[int]:
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text(encoding="utf-8")
    return [supervisor, *map(int, children.split())]


def _status(process: int) -> dict[str, str]:
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)
