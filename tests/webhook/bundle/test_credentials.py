from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.bundle.credentials import CredentialsError, Login, docker_config, find_login
from gpugate.webhook.bundle.reference import parse_reference

if TYPE_CHECKING:
    from pathlib import Path

REFERENCE = parse_reference("registry.example.com/acme/policies:1")


def auth(user: str, password: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


def found(tmp_path: Path, config: Any, reference: str = "registry.example.com/acme/policies:1") -> Login | None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    return find_login(parse_reference(reference), file)


@pytest.mark.parametrize(
    ("key", "reference"),
    [
        ("registry.example.com", "registry.example.com/a:1"),
        ("https://registry.example.com", "registry.example.com/a:1"),
        ("https://registry.example.com/v2/", "registry.example.com/a:1"),
        ("registry.example.com/acme", "registry.example.com/acme/b:1"),
        ("registry.example.com:5000", "registry.example.com:5000/a:1"),
        ("https://index.docker.io/v1/", "docker.io/acme/a:1"),
    ],
)
def test_a_key_applies_to_its_registry(tmp_path: Path, key: str, reference: str) -> None:
    assert found(tmp_path, {"auths": {key: auth("u", "p:w")}}, reference) == Login("u", "p:w")


@pytest.mark.parametrize(
    "key", ["example.com", "registry.example.com:5000", "registry.example.com/acm", "evil.registry.example.com"]
)
def test_a_key_of_another_registry_does_not_apply(tmp_path: Path, key: str) -> None:
    assert found(tmp_path, {"auths": {key: auth("u", "p")}}) is None


def test_the_longest_key_takes_precedence(tmp_path: Path) -> None:
    auths = {"registry.example.com": auth("u", "all"), "registry.example.com/acme": auth("u", "acme")}
    assert found(tmp_path, {"auths": auths}) == Login("u", "acme")


@pytest.mark.parametrize(
    ("entry", "login"),
    [
        ({"username": "u", "password": "p"}, Login("u", "p")),
        ({"identitytoken": "t"}, Login("", "", "t")),
        (auth("u", "p") | {"identitytoken": "t"}, Login("", "", "t")),
        ({}, None),
        (None, None),
    ],
)
def test_an_entry_has_several_forms(tmp_path: Path, entry: Any, login: Login | None) -> None:
    assert found(tmp_path, {"auths": {"registry.example.com": entry}}) == login


def test_without_a_file_there_are_no_credentials(tmp_path: Path) -> None:
    assert find_login(REFERENCE, tmp_path / "config.json") is None


def test_the_environment_names_the_folder(tmp_path: Path) -> None:
    assert docker_config({"DOCKER_CONFIG": "/x"}, tmp_path).as_posix() == "/x/config.json"
    assert docker_config({}, tmp_path) == tmp_path / ".docker" / "config.json"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{hunter2", "not a configuration of Docker"),
        ('{"auths": "hunter2"}', "not a configuration of Docker"),
        ('{"later": ' + "[" * 100_000, "not a configuration of Docker"),
        ('{"auths": {"registry.example.com": {"auth": "hunter2!"}}}', "invalid base64"),
        ('{"credsStore": "../../hunter2"}', "invalid name of a credential helper"),
        ('{"credsStore": "absent"}', "docker-credential-absent is not installed"),
    ],
)
def test_an_invalid_file_is_named_and_not_quoted(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(CredentialsError, match=reason) as raised:
        find_login(REFERENCE, file)
    assert "hunter2" not in str(raised.value)


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program `docker-credential-own`, which prints the file `answer` and records what it was asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "docker-credential-own"
    program.write_text(
        f'#!/bin/sh\ncat > {folder}/asked\necho "$1" >> {folder}/asked\ncat {folder}/answer\n. {folder}/end\n'
    )
    program.chmod(0o755)
    (folder / "end").write_text("")
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return folder


@pytest.mark.parametrize(
    ("answer", "login"),
    [
        ({"ServerURL": "x", "Username": "u", "Secret": "s"}, Login("u", "s")),
        ({"Username": "<token>", "Secret": "s"}, Login("", "", "s")),
        ({"Username": "u", "Secret": ""}, None),
    ],
)
@pytest.mark.parametrize("config", [{"credsStore": "own"}, {"credHelpers": {"registry.example.com": "own"}}])
def test_a_helper_that_the_configuration_names_is_asked(
    tmp_path: Path, helper: Path, answer: Any, login: Login | None, config: Any
) -> None:
    (helper / "answer").write_text(json.dumps(answer))
    assert found(tmp_path, config) == login
    assert (helper / "asked").read_text() == "registry.example.comget\n"


def test_a_helper_of_another_registry_is_not_run(tmp_path: Path, helper: Path) -> None:
    assert found(tmp_path, {"credHelpers": {"other.example.com": "own"}}) is None
    assert not (helper / "asked").exists()


def test_a_helper_without_credentials_leaves_those_of_the_file(tmp_path: Path, helper: Path) -> None:
    (helper / "answer").write_text("credentials not found in native keychain")
    (helper / "end").write_text("exit 1")
    config = {"credsStore": "own", "auths": {"registry.example.com": auth("u", "p")}}
    assert found(tmp_path, config) == Login("u", "p")


@pytest.mark.parametrize(
    ("end", "reason"), [("exit 3", "failed with exit code 3"), ("", "not that of a credential helper")]
)
def test_a_helper_that_fails_is_named_and_not_quoted(tmp_path: Path, helper: Path, end: str, reason: str) -> None:
    (helper / "answer").write_text("hunter2")
    (helper / "end").write_text(end)
    with pytest.raises(CredentialsError, match=reason) as raised:
        found(tmp_path, {"credsStore": "own"})
    assert "hunter2" not in str(raised.value)
