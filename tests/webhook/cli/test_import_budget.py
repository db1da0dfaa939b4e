from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# Each of these costs 40 to 400 ms to import, or belongs to another door.
HEAVY = {
    "cryptography",
    "flask",
    "gpugate.certs",
    "gpugate.webhook.admission.asgi",
    "gpugate.webhook.admission.gate",
    "gpugate.webhook.admission.response",
    "gpugate.webhook.admission.review",
    "gpugate.webhook.admission.serve",
    "importlib.metadata",
    "kubernetes",
    "orjson",
    "pydantic",
    "uvicorn",
}
PROGRAM = """
import sys
from gpugate.webhook.cli.main import main
code = main(sys.argv[1:])
print(*sys.modules, sep="\\n", file=sys.stderr)
"""


def imported_by(*arguments: str) -> set[str]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stderr.split())  # noqa: S603 -- fixed words


COMMANDS = {
    "check": ["check", "pod-training-job.yaml"],
    "check as JSON": ["check", "-o", "json", "pod-training-job.yaml"],
    "review of an object": ["review", "pod-training-job.yaml"],
    "explain": ["explain", "pods/missing-gpu-toleration"],
    "policies": ["policies"],
    "config": ["config", "show"],
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_a_command_imports_nothing_of_the_server(
    arguments: list[str], manifests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(manifests)

    assert imported_by(*arguments) & HEAVY == set()


def test_the_version_imports_no_policies_and_no_parser() -> None:
    found = {name for name in imported_by("--version") if name.startswith(("gpugate.policies", "argparse", "msgspec"))}

    assert found == set()


def test_a_plain_path_needs_no_glob(manifests: Path) -> None:
    assert "glob" not in imported_by("check", str(manifests / "pod-training-job.yaml"))
