"""`gpugate bundle` against a registry on a socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gpugate.webhook.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import FakeRegistry

POLICY_FILE = """\
apiVersion: gpugate.dev/v1
kind: PolicyConfig
policy_paths: [policies]
policies:
  acme/no-pods: {mode: enforce}
"""
CODE = """\
\"\"\"Pod.

## Why is this bad?

It is an example.

## Instead

Have none.
\"\"\"

from collections.abc import Iterator
from pathlib import Path

from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import AnyContext, validates

Path("RAN").touch()


@validates(POD, mode=Stance.WARN)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    \"\"\"Find Pods.\"\"\"
    yield Violation(pod["metadata"].path, "a Pod", hint="remove it")
"""
CEL = """\
apiVersion: gpugate.dev/v1
kind: Policy
id: acme/no-pods
title: Pod
why: It is an example.
instead: Have none.
match: {kinds: [Pod]}
validations: [{expression: "false", message: is a Pod, fix: Remove it.}]
examples:
  allowed: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]
  denied: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A policy file with a policy in CEL, and two pairs of keys."""
    (tmp_path / "policies" / "acme").mkdir(parents=True)
    (tmp_path / "policies" / "acme" / "pods.yaml").write_text(CEL)
    (tmp_path / "policy.yaml").write_text(POLICY_FILE)
    for name in ("own", "other"):
        key = ec.generate_private_key(ec.SECP256R1())
        form, public = serialization.PrivateFormat.PKCS8, serialization.PublicFormat.SubjectPublicKeyInfo
        pem = serialization.Encoding.PEM
        (tmp_path / f"{name}.pem").write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
        (tmp_path / f"{name}.pub").write_bytes(key.public_key().public_bytes(pem, public))
    return tmp_path


def pushed(registry: FakeRegistry, folder: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    assert main(["bundle", "push", f"{registry.host}/a:1", "-p", str(folder / "policy.yaml"), *flags]) == 0
    return capsys.readouterr().out.strip()


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["bundle", *arguments]) == 2
    return capsys.readouterr().err


def test_push_prints_the_pinned_reference_and_pull_takes_it(
    registry: FakeRegistry, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pinned = pushed(registry, folder, capsys)
    assert pinned.startswith(f"{registry.host}/a:1@sha256:")
    assert main(["bundle", "pull", pinned, str(folder / "out")]) == 0
    assert (folder / "out" / "policies" / "acme" / "pods.yaml").read_text() == CEL
    assert main(["policies", "-p", str(folder / "out" / "policy.yaml")]) == 0


def test_the_tag_is_written_last(registry: FakeRegistry, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pushed(registry, folder, capsys, f"--sign-key={folder / 'own.pem'}")
    writes = [path for method, path, _ in registry.requests if method == "PUT" and "/manifests/" in path]
    assert [path.rpartition("/")[2].partition(":")[0][-4:] for path in writes] == ["a256", ".sig", "1"]


def test_verify_says_digest_signer_and_contents(
    registry: FakeRegistry, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = pushed(registry, folder, capsys, f"--sign-key={folder / 'own.pem'}").rpartition("@")[2]
    assert main(["bundle", "verify", f"{registry.host}/a:1", f"--key={folder / 'own.pub'}"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert f"digest: {digest}" in printed
    assert any(line.startswith(f"signer: {folder / 'own.pub'} (sha256:") for line in printed)
    assert f"  policies/acme/pods.yaml  {len(CEL)}" in printed
    assert printed[-1] == "policy file: valid (own policies: 1, schemas: 0)"


@pytest.mark.parametrize("command", ["pull", "verify"])
@pytest.mark.parametrize(
    ("signed_by", "reason"), [(None, "not signed"), ("other.pem", "no valid signature by")], ids=["unsigned", "other"]
)
def test_a_bundle_that_the_key_has_not_signed_is_not_used(
    registry: FakeRegistry,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    signed_by: str | None,
    reason: str,
) -> None:
    pinned = pushed(registry, folder, capsys, *([f"--sign-key={folder / signed_by}"] if signed_by else []))
    target = [str(folder / "out")] if command == "pull" else []
    assert reason in failure(capsys, command, pinned, *target, f"--key={folder / 'own.pub'}")
    assert not (folder / "out").exists()


def test_a_digest_that_the_registry_does_not_have_is_not_called_unsigned(
    registry: FakeRegistry, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = failure(capsys, "verify", f"{registry.host}/a@sha256:{'a' * 64}", f"--key={folder / 'own.pub'}")
    assert "404: the registry does not have it" in error
    assert "not signed" not in error


def test_a_tag_that_moved_does_not_change_what_is_pinned(
    registry: FakeRegistry, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pinned = pushed(registry, folder, capsys)
    (folder / "policies" / "acme" / "pods.yaml").write_text(CEL.replace("is a Pod", "is another Pod"))
    assert pushed(registry, folder, capsys) != pinned
    assert main(["bundle", "pull", pinned, str(folder / "out")]) == 0
    assert (folder / "out" / "policies" / "acme" / "pods.yaml").read_text() == CEL


def test_code_runs_only_if_a_key_has_signed_it(
    registry: FakeRegistry, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "policies" / "acme" / "pods.yaml").unlink()
    ran = folder / "ran"
    (folder / "policies" / "acme" / "no_pods.py").write_text(CODE.replace("RAN", str(ran)))
    pinned = pushed(registry, folder, capsys, f"--sign-key={folder / 'own.pem'}")
    ran.unlink()
    assert main(["bundle", "verify", pinned]) == 0
    assert "its own policies were not loaded, because they contain Python code" in capsys.readouterr().out
    assert not ran.exists()
    assert main(["bundle", "verify", pinned, f"--key={folder / 'own.pub'}"]) == 0
    assert "own policies: 1" in capsys.readouterr().out
    assert ran.exists()


def test_a_policy_file_that_does_not_load_is_not_pushed(
    registry: FakeRegistry, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "policy.yaml").write_text(POLICY_FILE.replace("no-pods", "no-such-policy"))
    error = failure(capsys, "push", f"{registry.host}/a:1", "-p", str(folder / "policy.yaml"))
    assert "acme/no-such-policy" in error
    assert registry.requests == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("push", f"localhost:1/a@sha256:{'a' * 64}", "-p", "policy.yaml"), "write a tag"),
        (("pull", "a", "out"), "invalid reference"),
        (("pull", "localhost:1/a:1", "out", "--key", "absent.pub"), "--key absent.pub: no such file"),
        (("verify", "localhost:1/a:1", "--timeout", "0s"), "invalid timeout"),
        (("push", "localhost:1/a:1", "-p", "absent.yaml"), "absent.yaml"),
    ],
)
def test_wrong_usage_is_said(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    arguments: tuple[str, ...],
    reason: str,
) -> None:
    monkeypatch.chdir(folder)
    assert reason in failure(capsys, *arguments)
