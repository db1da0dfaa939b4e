"""What works where gpugate is installed without an extra: no package but those of `dependencies` can be imported there."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from gpugate.webhook.audit.flags import FORMATS
from gpugate.webhook.cli.parsers import parsers

ROOT = Path(__file__).parents[3]
DUMP = "tests/fixtures/dumps/ml-platform"
REVIEW = "tests/fixtures/reviews/nodepool-create-unlimited.validate.json"
POD = "tests/fixtures/manifests/pod-training-job.yaml"
# Standard input has the packages that may be imported and the commands; standard output gets what each gave. They share a
# process, because what cannot be imported stays so, and starting Python for each takes minutes.
PROGRAM = """
import contextlib, io, json, sys
packages, commands = json.load(sys.stdin)
# The standard library's list has no name that depends on the platform, which sysconfig imports.
base = {*packages, "gpugate", *sys.stdlib_module_names}


class OnlyBase:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in base and not name.startswith("_sysconfigdata_"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, OnlyBase())
from gpugate.webhook.cli.main import main
ran = []
for command in commands:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(command)
        except SystemExit as exit:
            code = exit.code
    ran.append((code, out.getvalue(), err.getvalue()))
json.dump(ran, sys.stdout)
"""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def base_packages() -> list[str]:
    """Return the names under which the distributions of the base lock are imported."""
    locked = {
        line.partition("==")[0]
        for line in (ROOT / "requirements" / "check.txt").read_text().splitlines()
        if "==" in line and not line.startswith(" ")
    }
    return [
        package
        for package, distributions in packages_distributions().items()
        if locked & {name.lower().replace("_", "-") for name in distributions}
    ]


HELPS = [*parsers(), "webhook", "config", "schema", ""]
COMMANDS = {
    "check": (("check", POD, "-o", "text", "-o", "sarif={tmp}/a", "-o", "junit={tmp}/b", "-o", "json={tmp}/c"), {0, 1}),
    "test": (("test", "policies/claims"), {0}),
    "audit of a dump": (("audit", "--from", DUMP), {0}),
    "audit in every format": (
        ("audit", "--from", DUMP, *(f"-o={name}={{tmp}}/{name}" for name in FORMATS)),
        {0},
    ),
    "why of a dump": (("why", POD, "--from", DUMP), {0, 1}),
    "simulation of a dump": (("simulate", "--candidate", "tests/ci-example/policy.yaml", "--from", DUMP), {0}),
    "catalogue of a dump": (("catalogue", "--from", DUMP), {0}),
    "rights of an audit": (("audit", "--print-rbac"), {0}),
    "review of an object": (("review", POD), {0, 1}),
    "review of an AdmissionReview": (("review", REVIEW), {1}),
    "bench of a review": (("bench", REVIEW, "--repetitions", "1"), {0}),
    "explain": (("explain", "pods/missing-gpu-toleration"), {0}),
    "policies": (("policies",), {0}),
    "config": (("config", "show"), {0}),
    "JSON schemas": (("config", "schema", "audit"), {0}),
    "schemas of kinds": (("schema", "list"), {0}),
    "completion": (("completion", "bash"), {0}),
    "a completed word": (("__complete", "webhook", "rot"), {0}),
    "registration": (("registration", "--certificate-secret", "gpugate-certificates"), {0}),
}


WITH_AN_EXTRA = ("serve", "doctor", "webhook status", "audit")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], Ran]:
    """What each command gave; files are written to a directory that `{tmp}` stands for."""
    written = str(tmp_path_factory.mktemp("written"))
    commands = [
        *((*words.split(), "--help") for words in HELPS),
        *(command for command, _ in COMMANDS.values()),
        *(tuple(words.split()) for words in WITH_AN_EXTRA),
    ]
    given = json.dumps([base_packages(), [[word.replace("{tmp}", written) for word in each] for each in commands]])
    arguments = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(arguments, input=given, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603 -- fixed words
    return {command: Ran(*each) for command, each in zip(commands, json.loads(done.stdout), strict=True)}


@pytest.mark.parametrize("words", HELPS)
def test_every_command_has_its_help(words: str, ran: dict[tuple[str, ...], Ran]) -> None:
    found = ran[*words.split(), "--help"]

    assert (found.code, found.err, f"usage: gpugate {words}".strip() in found.out) == (0, "", True)


@pytest.mark.parametrize(("command", "codes"), COMMANDS.values(), ids=COMMANDS)
def test_what_needs_no_cluster_and_no_server_works(
    command: tuple[str, ...], codes: set[int], ran: dict[tuple[str, ...], Ran]
) -> None:
    found = ran[command]

    assert (found.code in codes, "not installed" in found.err) == (True, False), found
    assert found.out or "{tmp}" in "".join(command)


@pytest.mark.parametrize("words", WITH_AN_EXTRA)
def test_a_command_for_a_server_or_a_cluster_names_the_extra(words: str, ran: dict[tuple[str, ...], Ran]) -> None:
    found = ran[tuple(words.split())]

    assert (found.code, found.err.count("\n")) == (2, 2)
    assert "install the extra `webhook`" in found.err
