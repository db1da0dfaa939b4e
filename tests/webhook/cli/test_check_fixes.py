from __future__ import annotations

import errno
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., Any]

SELECT = ("--select", "pods/missing-gpu-toleration")
POD = """\
# ours
apiVersion: v1
kind: Pod
metadata: {name: trainer, namespace: ml}
spec:
  containers:
    - name: main  # the only one
      resources: {limits: {nvidia.com/gpu: 1}}
"""
TOLERATION = "  tolerations:\n    - key: nvidia.com/gpu\n      operator: Exists\n      effect: NoSchedule\n"


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "pod.yaml"
    file.write_text(POD)
    return file


def test_fix_writes_the_file_and_reports_what_remains(gpugate: Run, pod: Path) -> None:
    ran = gpugate("check", "--fix", *SELECT, "pod.yaml")

    assert pod.read_text() == POD + TOLERATION
    assert ran.code == 0
    assert ran.out.splitlines()[1:] == ["Made 1 change"]


def test_fix_again_changes_nothing(gpugate: Run, pod: Path) -> None:
    gpugate("check", "--fix", *SELECT, "pod.yaml")
    before = pod.stat().st_mtime_ns

    gpugate("check", "--fix", *SELECT, "pod.yaml")

    assert pod.stat().st_mtime_ns == before


def test_fix_changes_every_file_with_a_finding_that_is_reported_once(gpugate: Run, pod: Path) -> None:
    other = pod.with_name("other.yaml")
    other.write_text(POD.replace("trainer", "other"))

    ran = gpugate("check", "--fix", *SELECT, ".")

    assert pod.read_text() == POD + TOLERATION
    assert other.read_text() == POD.replace("trainer", "other") + TOLERATION
    assert ran.out.splitlines()[1:] == ["Made 2 changes"]


POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: inference}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements:
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [g5, g6]}
"""
TAINT = '      taints:\n        - key: nvidia.com/gpu\n          value: "true"\n          effect: NoSchedule\n'
ON_THE_POOL = POD + "  nodeSelector: {karpenter.sh/nodepool: inference}\n"
IN_TURN = ("--select", "nodepools/missing-gpu-taint", *SELECT, "--unsafe-fixes")


def test_a_finding_that_a_fix_causes_in_another_file_is_fixed_in_the_same_run(gpugate: Run, pod: Path) -> None:
    pod.write_text(ON_THE_POOL)
    pool = pod.with_name("pool.yaml")
    pool.write_text(POOL)

    shown = gpugate("check", "--diff", *IN_TURN, ".").out
    ran = gpugate("check", "--fix", *IN_TURN, ".")

    assert (pool.read_text(), pod.read_text()) == (POOL + TAINT, ON_THE_POOL + TOLERATION)
    assert ran.out.splitlines()[1:] == ["Made 2 changes"]
    assert gpugate("check", "--diff", *IN_TURN, ".").out == ""
    pool.write_text(POOL)
    pod.write_text(ON_THE_POOL)
    subprocess.run(["patch", "-s", "-p0"], input=shown, text=True, check=True)  # noqa: S607 -- whichever there is
    assert (pool.read_text(), pod.read_text()) == (POOL + TAINT, ON_THE_POOL + TOLERATION)


def test_diff_prints_what_fix_would_do_and_writes_nothing(gpugate: Run, pod: Path, tmp_path: Path) -> None:
    ran = gpugate("check", "--diff", *SELECT, "pod.yaml", "-o", "json=found.json")

    assert pod.read_text() == POD
    assert json.loads((tmp_path / "found.json").read_text())["summary"]["notes"] == 1
    subprocess.run(["patch", "-s", "-p0"], input=ran.out, text=True, check=True)  # noqa: S607 -- whichever there is
    assert pod.read_text() == POD + TOLERATION


def test_diff_takes_standard_input(gpugate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(POD.encode())))

    assert gpugate("check", "--diff", *SELECT, "-").out.startswith("--- <stdin>\n+++ <stdin>\n")


def test_what_reads_once_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(POD)
    command = [sys.executable, "-m", "gpugate.webhook.cli.main", "check", "--diff", *SELECT, "-"]

    with file.open() as stdin:
        ran = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=True)  # noqa: S603 -- ours

    assert "+  tolerations:" in ran.stdout


BYTES = {
    "DOS lines": POD.replace("\n", "\r\n").encode(),
    "a byte order mark": b"\xef\xbb\xbf" + POD.encode(),
    "UTF-16": POD.encode("utf-16"),
    "no line break at the end": POD.rstrip("\n").encode(),
    "two documents": f"---\n{POD}---\n# nothing\n---\n{POD.replace('trainer', 'second')}".encode(),
}


@pytest.mark.parametrize("data", BYTES.values(), ids=BYTES)
def test_what_is_not_changed_stays_byte_by_byte(data: bytes, gpugate: Run, pod: Path) -> None:
    codec = "utf-16" if data.startswith(b"\xff\xfe") else "utf-8"
    pod.write_bytes(data)

    ran = gpugate("check", "--fix", *SELECT, "pod.yaml")

    before, after = (text.decode(codec).split("\n") for text in (data, pod.read_bytes()))
    added = [line for line in after if "tolerations" in line or "nvidia.com/gpu\r" in line or "key:" in line]
    assert ran.code == 0
    assert added
    assert [line.rstrip("\r") for line in before if line] == [
        line.rstrip("\r") for line in after if line and line.rstrip("\r") not in TOLERATION.split("\n")
    ]
    assert ("\r\n" in data.decode(codec)) is all(line.endswith("\r") for line in after[:-1])


def test_a_file_keeps_its_mode_and_its_link(gpugate: Run, pod: Path, tmp_path: Path) -> None:
    pod.chmod(0o640)
    (tmp_path / "link.yaml").symlink_to(pod)

    gpugate("check", "--fix", *SELECT, "link.yaml")

    assert (tmp_path / "link.yaml").is_symlink()
    assert (pod.read_text(), pod.stat().st_mode & 0o777) == (POD + TOLERATION, 0o640)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.yaml", "pod.yaml"]


def test_a_file_that_cannot_be_written_is_an_error(gpugate: Run, pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refused)

    ran = gpugate("check", "--fix", *SELECT, "pod.yaml")

    assert (ran.code, ran.err, pod.read_text()) == (2, "error: pod.yaml: permission denied\n", POD)


def test_what_cannot_be_changed_is_said(gpugate: Run, pod: Path) -> None:
    pod.write_text(POD.replace("spec:", "spec: &spec").replace("metadata:", "x: &x {}\nmetadata:") + "y: *spec\n")

    ran = gpugate("check", "--fix", *SELECT, "pod.yaml")

    assert "  pod.yaml:6: pods/missing-gpu-toleration was not fixed: the value is an alias of another one" in ran.out


def test_every_policy_together_comes_to_rest(gpugate: Run, manifests: Path, tmp_path: Path) -> None:
    for file in manifests.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())

    gpugate("check", "--fix", "--unsafe-fixes", tmp_path)
    once = {file.name: file.read_text() for file in tmp_path.iterdir()}
    ran = gpugate("check", "--fix", "--unsafe-fixes", tmp_path)

    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == once
    assert "can be fixed" not in ran.out


USAGE = {
    "unsafe without fix": (
        ["--unsafe-fixes"],
        "--unsafe-fixes requires --fix or --diff",
    ),
    "two things on standard output": (["--diff", "-o", "text"], "-o text: standard output gets the diff; add =FILE"),
    "fix of standard input": (["--fix", "-"], "--fix cannot write to <stdin>; use --diff"),
}


@pytest.mark.parametrize(("flags", "message"), USAGE.values(), ids=USAGE)
def test_flags_that_do_not_fit_together(flags: list[str], message: str, gpugate: Run) -> None:
    ran = gpugate("check", *flags)

    assert (ran.code, ran.err) == (2, f"error: {message}\n")
