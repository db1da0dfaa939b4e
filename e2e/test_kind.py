"""`make e2e CLUSTER=kind` where something it needs is missing, and the commands it gives where nothing is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cluster.installed_webhook import values
from cluster.kind import ROOT, KindError, KindMissingError, running_kind

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DATA = "ZGF0YQ=="
KUBECONFIG = json.dumps(
    {
        "clusters": [{"cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": DATA}}],
        "users": [{"user": {"client-certificate-data": DATA, "client-key-data": DATA}}],
    }
)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A docker and a kind that write down how they were called, and nothing else on the PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    written = f'[ "$2" = cluster ] && [ "$1" = create ] && echo \'{KUBECONFIG}\' > "$6"'
    for name, also in (("docker", ":"), ("kind", written)):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "{folder}/calls"\n{also}\nexit 0\n')
        (folder / name).chmod(0o755)
    return folder


def calls(programs: Path) -> Iterable[str]:
    return [" ".join(line.split()[:3]) for line in (programs / "calls").read_text().splitlines()]


def started(folder: Path, root: Path | None = None) -> str:
    with running_kind(folder, root=root or folder) as running:
        return running.url


@pytest.mark.parametrize("missing", ["docker", "kind"])
def test_a_program_that_is_missing(programs: Path, tmp_path: Path, missing: str) -> None:
    (programs / missing).unlink()
    with pytest.raises(KindMissingError, match=f"needs {missing}"):
        started(tmp_path)


def test_docker_that_does_not_answer(programs: Path, tmp_path: Path) -> None:
    (programs / "docker").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(KindMissingError, match="docker info"):
        started(tmp_path)


@pytest.mark.usefixtures("programs")
def test_no_dockerfile(tmp_path: Path) -> None:
    with pytest.raises(KindError, match=r"there is no .*Dockerfile"):
        started(tmp_path)


def test_a_cluster_is_made_and_deleted(programs: Path, tmp_path: Path) -> None:
    assert started(tmp_path, ROOT) == "https://127.0.0.1:1"
    assert calls(programs) == [
        "docker info",
        "docker info",
        "docker build --tag",
        "kind create cluster",
        "kind load docker-image",
        "kind delete cluster",
    ]


def test_the_image_that_is_built_is_loaded_and_installed(programs: Path, tmp_path: Path) -> None:
    started(tmp_path, ROOT)
    words = [line.split() for line in (programs / "calls").read_text().splitlines()]
    built = next(call[call.index("--tag") + 1] for call in words if call[:2] == ["docker", "build"])
    loaded = next(call[3] for call in words if call[:3] == ["kind", "load", "docker-image"])
    told = values({})["image"]
    # What is loaded is on no registry, so that it must not be looked for there.
    assert {built, loaded} == {f"{told['repository']}:{told['tag']}"}
    assert told["pullPolicy"] == "Never"


def test_every_command_is_about_the_same_cluster(programs: Path, tmp_path: Path) -> None:
    started(tmp_path, ROOT)
    words = [line.split() for line in (programs / "calls").read_text().splitlines()]
    named = [call[call.index("--name") + 1] for call in words if call[0] == "kind"]
    assert len(named) == 3
    assert len(set(named)) == 1


def test_an_image_that_cannot_be_built(programs: Path, tmp_path: Path) -> None:
    (programs / "docker").write_text('#!/bin/sh\n[ "$1" = info ] && exit 0\necho no such base >&2\nexit 1\n')
    with pytest.raises(KindError, match=r"image/build.py --engine docker .* failed:\n  no such base"):
        started(tmp_path, ROOT)
    assert not (programs / "calls").exists(), "a cluster was made for it"


def test_a_command_that_fails(programs: Path, tmp_path: Path) -> None:
    (programs / "kind").write_text("#!/bin/sh\necho no space left >&2\nexit 1\n")
    with pytest.raises(KindError, match=r"kind create cluster .* failed:\n  no space left"):
        started(tmp_path, ROOT)
