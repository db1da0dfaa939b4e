from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.cluster.credentials import check, load
from gpugate.webhook.cluster.errors import ClusterError
from gpugate.webhook.cluster.options import ClusterOptions, detect_cluster

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
clusters: [{name: one, cluster: {server: "https://10.0.0.1:6443/"}}]
users: [{name: me, user: {token: s3cret}}]
contexts: [{name: one, context: {cluster: one, user: me}}, {name: lost, context: {cluster: gone, user: me}}]
current-context: one
"""
BAD = {
    "no file": (None, None, "no kubeconfig at {file}: choose a kubeconfig with --kubeconfig"),
    "an empty file": ("", None, "file is empty"),
    "a list": ("- token: s3cret\n", None, "unreadable (TypeError)"),
    "broken YAML": ("users: [\n  token: s3cret\n", None, "unreadable (ParserError)"),
    "an unknown context": (GOOD, "two", "has no context two: `kubectl config get-contexts` lists the contexts"),
    "a context with an unknown cluster": (GOOD, "lost", "Expected object with name gone"),
    "no current context": (GOOD.replace("current-context: one", ""), None, "Expected key current-context"),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kubeconfig"


@pytest.mark.parametrize("function", [check, load])
@pytest.mark.parametrize(("content", "context", "message"), BAD.values(), ids=BAD)
def test_errors_of_a_kubeconfig_contain_no_secrets(
    file: Path, function: object, content: str | None, context: str | None, message: str
) -> None:
    if content is not None:
        file.write_text(content)

    with pytest.raises(ClusterError) as error:
        function(ClusterOptions(file, context))  # type: ignore[operator] # check or load

    assert message.format(file=file) in str(error.value)
    assert "s3cret" not in str(error.value)


def test_the_current_context_is_used(file: Path) -> None:
    file.write_text(GOOD)

    check(ClusterOptions(file))

    assert load(ClusterOptions(file)).configuration.host == "https://10.0.0.1:6443"


def test_a_given_context_needs_no_current_context(file: Path) -> None:
    file.write_text(GOOD.replace("current-context: one", ""))

    check(ClusterOptions(file, "one"))

    assert load(ClusterOptions(file, "one")).configuration.host == "https://10.0.0.1:6443"


def test_the_kubeconfig_of_the_environment_is_used(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(GOOD)
    monkeypatch.setenv("KUBECONFIG", str(file))

    assert load(ClusterOptions()).configuration.host == "https://10.0.0.1:6443"


@pytest.mark.parametrize("function", [check, load])
def test_a_service_account_requires_a_pod(function: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(ClusterError, match="not in a Pod with a ServiceAccount token"):
        function(ClusterOptions(in_cluster=True))  # type: ignore[operator] # check or load


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
DETECTED = {
    "nothing": (None, None, {}, None),
    "a Pod": (None, None, IN_POD, ClusterOptions(in_cluster=True)),
    "a file in a Pod": ("f", None, IN_POD, ClusterOptions("f", None)),  # type: ignore[arg-type] # any path
    "a context in a Pod": (None, "c", IN_POD, ClusterOptions(None, "c")),
    "a kubeconfig in the environment": (None, None, {"KUBECONFIG": "f"}, None),
}


@pytest.mark.parametrize(("kubeconfig", "context", "environ", "expected"), DETECTED.values(), ids=DETECTED)
def test_the_cluster_of_a_server_is_detected(
    kubeconfig: Path | None,
    context: str | None,
    environ: dict[str, str],
    expected: ClusterOptions | None,
) -> None:
    assert detect_cluster(kubeconfig, context, environ) == expected


def test_the_default_kubeconfig_is_used(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(GOOD)
    monkeypatch.setattr("gpugate.webhook.cluster.credentials.DEFAULT_KUBECONFIG", str(file))
    monkeypatch.delenv("KUBECONFIG", raising=False)

    assert load(ClusterOptions()).configuration.host == "https://10.0.0.1:6443"
