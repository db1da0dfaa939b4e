"""The steps of the GitHub Action for a pull request that changes the policy file."""

from __future__ import annotations

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Run = Callable[..., Any]

HEAD = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies:\n  pods/hidden-gpu-access: "
EVENT = {
    "kind": "Event",
    "apiVersion": "audit.k8s.io/v1",
    "stage": "ResponseComplete",
    "verb": "create",
    "user": {"username": "alice"},
    "objectRef": {"resource": "pods", "namespace": "ml", "name": "debug"},
    "responseStatus": {"code": 201},
    "requestObject": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "debug", "namespace": "ml"},
        "spec": {
            "containers": [{"name": "c", "image": "i:1", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}]
        },
    },
    "requestReceivedTimestamp": "2026-11-20T10:00:00Z",
}
INPUTS = {"INPUT_POLICY_FILE": "policy.yaml", "INPUT_SIMULATE_FROM": "audit.log", "GITHUB_BASE_REF": "main"}


def git(workspace: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", workspace, *who, *arguments], check=True, capture_output=True)  # noqa: S603, S607 -- fixed words


@pytest.fixture
def pull_request(workspace: Path, tmp_path: Path) -> Path:
    """A checkout of a change that denies what the policy file of `main` warns about."""
    origin = tmp_path / "origin"
    origin.mkdir()
    (origin / "policy.yaml").write_text(f"{HEAD}{{mode: warn}}\n")
    git(origin, "init", "--quiet", "--initial-branch", "main")
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "--message", "base")
    git(workspace, "init", "--quiet", "--initial-branch", "change")
    git(workspace, "remote", "add", "origin", origin.as_uri())
    (workspace / "policy.yaml").write_text(f"{HEAD}{{mode: enforce}}\n")
    (workspace / "audit.log").write_text(f"{json.dumps(EVENT)}\n")
    git(workspace, "add", ".")
    git(workspace, "commit", "--quiet", "--message", "change")
    return workspace


@pytest.mark.usefixtures("pull_request")
@pytest.mark.parametrize(("most", "exit_code"), [("", "0"), ("0", "1"), ("1", "0")])
def test_a_change_of_the_policy_file_is_simulated(step: Run, most: str, exit_code: str) -> None:
    ran = step("simulate", **INPUTS, INPUT_MAX_NEW_DENIALS=most)

    assert ran.code == 0, ran.log
    assert (ran.outputs["exit-code"], ran.outputs["new-denials"]) == (exit_code, "1")
    assert "1 owner newly denied" in ran.summary
    assert "current policy.yaml of refs/remotes/origin/main" in ran.summary


SPY = "import pathlib\n\npathlib.Path('ran').write_text('code of the change')\n"
OF_BASE = """apiVersion: gpugate.dev/v1
kind: Policy
id: acme/privileged
title: privileged container
why: it sees every GPU of its node
mode: warn
match: {kinds: [Pod]}
validations:
  - expression: object.spec.containers.all(c, !has(c.securityContext))
    message: has a security context
"""


@pytest.mark.parametrize("of_base", ["", OF_BASE], ids=["a new directory", "a directory of the base"])
def test_policies_of_the_change_are_not_run(pull_request: Path, tmp_path: Path, step: Run, of_base: str) -> None:
    origin = tmp_path / "origin"
    for folder, mode, policies in (
        (origin, "warn", {"privileged.yaml": of_base}),
        (pull_request, "enforce", {"privileged.yaml": of_base, "spy.py": SPY}),
    ):
        (folder / "policy.yaml").write_text(f"{HEAD}{{mode: {mode}}}\npolicy_paths: [./rules]\n")
        (folder / "rules" / "acme").mkdir(parents=True)
        for name, text in policies.items():
            if text:
                (folder / "rules" / "acme" / name).write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", "policies")

    ran = step("simulate", **INPUTS)

    assert not (pull_request / "ran").exists()
    assert ran.outputs["new-denials"] == "1", ran.log
    assert "policies outside the library are those of refs/remotes/origin/main, not of the change" in ran.summary


UNCHANGED = {
    "no input": {"INPUT_SIMULATE_FROM": " \n"},
    "no pull request": {"GITHUB_BASE_REF": ""},
}


@pytest.mark.usefixtures("pull_request")
@pytest.mark.parametrize("inputs", UNCHANGED.values(), ids=UNCHANGED)
def test_nothing_is_simulated_unless_asked(step: Run, inputs: dict[str, str]) -> None:
    ran = step("simulate", **{**INPUTS, **inputs})

    assert (ran.code, ran.outputs, ran.summary) == (0, {}, "")


def test_an_unchanged_policy_file_is_not_simulated(step: Run, pull_request: Path) -> None:
    (pull_request / "policy.yaml").write_text(f"{HEAD}{{mode: warn}}\n")

    ran = step("simulate", **INPUTS)

    assert (ran.code, ran.outputs) == (0, {})
    assert "the policy file did not change" in ran.log


def test_a_new_policy_file_is_compared_with_the_shipped_defaults(step: Run, pull_request: Path) -> None:
    (pull_request / "new.yaml").write_text(f"{HEAD}{{mode: warn}}\n")
    git(pull_request, "add", ".")

    ran = step("simulate", **{**INPUTS, "INPUT_POLICY_FILE": "new.yaml"})

    assert (ran.outputs["exit-code"], ran.outputs["new-denials"]) == ("0", "0")
    assert "the shipped defaults" in ran.summary


BROKEN = {
    "invalid policy file": ({"policy.yaml": "polices: {}\n"}, {}, "2"),
    "nothing to evaluate": ({"audit.log": ""}, {}, "3"),
    "missing log": ({}, {"INPUT_SIMULATE_FROM": "missing.log"}, "2"),
    "no number": ({}, {"INPUT_MAX_NEW_DENIALS": "many"}, "2"),
}


@pytest.mark.parametrize(("files", "inputs", "code"), BROKEN.values(), ids=BROKEN)
def test_a_simulation_that_fails_fails_the_verdict(
    step: Run, pull_request: Path, files: dict[str, str], inputs: dict[str, str], code: str
) -> None:
    for name, text in files.items():
        (pull_request / name).write_text(text)

    ran = step("simulate", **{**INPUTS, **inputs})

    assert ran.code == 0
    assert ran.outputs == {"exit-code": code, "simulation-file": "", "new-denials": ""}
    assert step("verdict", EXIT_CODE="0", SIMULATION_EXIT_CODE=code).code == 2


@pytest.mark.parametrize(("fails", "code"), [("true", 1), ("false", 0)])
def test_new_denials_fail_the_verdict(step: Run, fails: str, code: int) -> None:
    assert step("verdict", EXIT_CODE="0", SIMULATION_EXIT_CODE="1", INPUT_FAIL=fails).code == code


def test_a_candidate_that_leads_out_of_the_checkout_is_refused(step: Run, pull_request: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("password: hunter2\n")
    (pull_request / "policy.yaml").unlink()
    (pull_request / "policy.yaml").symlink_to(tmp_path / "secret")

    ran = step("simulate", **INPUTS)

    assert (ran.outputs["exit-code"], ran.outputs["simulation-file"]) == ("2", "")
    assert "hunter2" not in ran.log


EVIL = "x; touch stolen && $(touch stolen) `touch stolen` ' \" touch stolen"


@pytest.mark.parametrize("name", ["INPUT_SIMULATE_FROM", "INPUT_POLICY_FILE", "INPUT_MAX_NEW_DENIALS"])
@pytest.mark.parametrize("value", [EVIL, "--write-exemptions=stolen", "audit.log\n--write-exemptions=stolen"])
def test_an_input_is_never_a_command_or_a_flag(name: str, value: str, step: Run, pull_request: Path) -> None:
    step("simulate", **{**INPUTS, name: value})

    assert not (pull_request / "stolen").exists()


class Call(NamedTuple):
    """A request that the API received."""

    method: str
    path: str
    token: str
    body: str


class Api(HTTPServer):
    """GitHub's API for the comments of one pull request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls: list[Call] = []
        self.comments: list[dict[str, Any]] = []
        self.code = 200


class Handler(BaseHTTPRequestHandler):
    server: Api

    def handle_any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length))["body"] if length else ""
        self.server.calls.append(Call(self.command, self.path, self.headers.get("Authorization") or "", body))
        page = int(self.path.rpartition("page=")[2]) if self.command == "GET" else 1
        found: Any = self.server.comments[(page - 1) * 100 : page * 100] if self.command == "GET" else {}
        self.send_response(self.server.code)
        if self.server.code == 302:
            self.send_header("Location", "/elsewhere?page=1")
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    do_GET = do_POST = do_PATCH = handle_any  # noqa: N815 -- names of the base class

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def comment(step: Run, api: Api, tmp_path: Path) -> Callable[..., Any]:
    def run(text: str = "## gpugate simulate\n", **inputs: str) -> Any:
        (tmp_path / "report.md").write_text(text)
        given = {
            "SIMULATION_FILE": str(tmp_path / "report.md"),
            "INPUT_TOKEN": "t0ken",
            "GITHUB_API_URL": f"http://127.0.0.1:{api.server_port}",
            "GITHUB_REPOSITORY": "team/platform",
            "GITHUB_REF": "refs/pull/7/merge",
        }
        return step("comment", **{**given, **inputs})

    return run


def test_the_report_is_a_comment(comment: Callable[..., Any], api: Api) -> None:
    ran = comment()

    assert (ran.code, ran.log) == (0, "")
    read, written = api.calls
    assert (read.method, written.method, written.path) == ("GET", "POST", "/repos/team/platform/issues/7/comments")
    assert written.body == "<!-- gpugate simulate -->\n## gpugate simulate\n"
    assert written.token == "Bearer t0ken"  # noqa: S105 -- of this test


def test_a_later_run_updates_the_comment_of_a_bot_only(comment: Callable[..., Any], api: Api) -> None:
    mark = "<!-- gpugate simulate -->\nold"
    others = [{"id": number, "user": {"type": "User"}, "body": mark} for number in range(150)]
    api.comments = [*others, {"id": 999, "user": {"type": "Bot"}, "body": mark}]

    comment()

    assert [(call.method, call.path.rpartition("/")[2]) for call in api.calls] == [
        ("GET", "comments?per_page=100&page=1"),
        ("GET", "comments?per_page=100&page=2"),
        ("PATCH", "999"),
    ]


@pytest.mark.parametrize("inputs", [{"INPUT_TOKEN": ""}, {"SIMULATION_FILE": ""}, {"GITHUB_REF": "refs/heads/main"}])
def test_nothing_is_written_without_a_token_a_report_or_a_pull_request(
    comment: Callable[..., Any], api: Api, inputs: dict[str, str]
) -> None:
    assert (comment(**inputs).code, api.calls) == (0, [])


@pytest.mark.parametrize("code", [302, 403, 500])
def test_a_comment_that_cannot_be_written_fails_nothing_and_shows_no_token(
    comment: Callable[..., Any], api: Api, code: int
) -> None:
    api.code = code

    ran = comment()

    assert (ran.code, f"HTTP {code}" in ran.log, "t0ken" in ran.log) == (0, True, False)
    assert "::warning title=gpugate::" in ran.log
    # No redirect gets the token.
    assert len(api.calls) == 1


def test_a_long_report_is_shortened(comment: Callable[..., Any], api: Api) -> None:
    comment("x" * 70_000)

    assert len(api.calls[-1].body) < 65_536
    assert "shortened" in api.calls[-1].body
