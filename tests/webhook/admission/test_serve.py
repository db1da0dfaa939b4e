from __future__ import annotations

import http.client
import json
import socket
import ssl
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEAD = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",'
TOO_LARGE = 33 * 1024 * 1024


@pytest.mark.parametrize(
    ("name", "path", "allowed", "annotations"),
    [
        ("pod-create-gpu-untolerated.mutate", "mutate", True, {"mutate": "pods/missing-gpu-toleration"}),
        ("pod-create-gpu-untolerated.validate", "validate", True, {}),
        ("pod-create-gpu-tolerated.mutate", "mutate", True, {}),
        ("pod-create-training.mutate", "mutate", True, {}),
        ("pod-create-by-job.mutate", "mutate", True, {}),
        ("pod-update-by-job-controller.mutate", "mutate", True, {}),
        ("pod-delete.validate", "validate", True, {}),
        ("pod-exec-connect.mutate", "mutate", True, {}),
        ("pod-binding-create.mutate", "mutate", True, {}),
        ("pod-status-update.mutate", "mutate", True, {}),
        ("pod-ephemeralcontainers-update.mutate", "mutate", True, {}),
        ("pod-ephemeralcontainers-update.validate", "validate", True, {}),
        ("nodepool-create.validate", "validate", True, {}),
        ("nodepool-update.validate", "validate", True, {}),
        ("nodepool-delete.validate", "validate", True, {}),
        ("nodepool-create-unlimited.validate", "validate", False, {"deny": "nodepools/missing-gpu-limit"}),
        (
            "scaledobject-create.validate",
            "validate",
            True,
            {
                "skip": "scaling/gpu-ceiling,scaling/hpa-conflict,scaling/missing-target,scaling/zero-floor-in-production"
            },
        ),
        ("scaledobject-create-dry-run.mutate", "mutate", True, {}),
    ],
)
def test_captured_reviews(
    webhook: Any,
    captured: Callable[[str], bytes],
    name: str,
    path: str,
    allowed: bool,  # noqa: FBT001 -- a table's column
    annotations: dict[str, str],
) -> None:
    response = getattr(webhook, path)(captured(name))
    review_response = response.get("auditAnnotations", {})
    decided = {key: review_response[key] for key in ("deny", "mutate") if key in review_response}
    expected = {key: value for key, value in annotations.items() if key != "skip"}
    assert (response["allowed"], decided, "patch" in response) == (allowed, expected, "mutate" in annotations)
    assert annotations.items() <= review_response.items()


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "code"),
    [
        pytest.param("POST", "/validate", b"{", {}, 400, id="bad-json"),
        pytest.param("POST", "/validate", b"", {}, 400, id="empty-body"),
        pytest.param("GET", "/validate", None, {}, 405, id="get"),
        pytest.param("OPTIONS", "/mutate", None, {}, 405, id="options"),
        pytest.param("POST", "/validate/", b"{}", {}, 404, id="trailing-slash"),
        pytest.param("POST", "//validate", b"{}", {}, 404, id="doubled-slash"),
        pytest.param("POST", "/x/../validate", b"{}", {}, 404, id="dots"),
        pytest.param("POST", "/validate", b"{}", {"Content-Type": "text/plain"}, 415, id="text"),
        pytest.param("POST", "/validate", b"{}", {"Content-Encoding": "gzip"}, 415, id="gzip"),
        pytest.param("POST", "/validate", b" " * TOO_LARGE, {}, 413, id="33-MiB"),
    ],
)
def test_bad_requests(
    webhook: Any, method: str, path: str, body: bytes | None, headers: dict[str, str], code: int
) -> None:
    status, answered, answer = webhook.request(method, path, body, headers)
    assert (status, answered["Content-Type"], answered["Connection"]) == (code, "application/json", "close")
    assert json.loads(answer)["kind"] == "Status"


MALFORMED = {
    "a-quantity-in-words": (
        ("spec", "containers", 0, "resources", "limits", "nvidia.com/gpu"),
        "8 GPUs",
        'spec.containers[0].resources.limits["nvidia.com/gpu"]: "8 GPUs" is not a quantity',
    ),
    "a-list-where-an-object-belongs": (("spec", "containers", 0), ["c"], "spec.containers[0]: must be an object"),
    "a-spec-that-is-a-list": (("spec",), [], "spec: must be an object, not a list"),
}


@pytest.mark.parametrize(("path", "value", "says"), MALFORMED.values(), ids=MALFORMED)
def test_a_field_of_the_wrong_type(
    webhook: Any, captured: Callable[[str], bytes], path: tuple[str | int, ...], value: object, says: str
) -> None:
    review = json.loads(captured("pod-create-gpu-untolerated.mutate"))
    parent = review["request"]["object"]
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    mutating, validating = webhook.mutate(review), webhook.validate(review)
    assert (mutating["allowed"], "patch" in mutating, len(mutating["warnings"])) == (True, False, 1)
    assert (validating["allowed"], validating["status"]["code"]) == (False, 422)
    assert validating["status"]["message"].startswith(says)


@pytest.mark.parametrize(("phase", "allowed"), [("mutate", True), ("validate", False)], ids=["mutate", "validate"])
def test_a_huge_review_with_a_uid_is_answered(webhook: Any, phase: str, allowed: bool) -> None:  # noqa: FBT001 -- a table's column
    response = getattr(webhook, phase)(HEAD.ljust(TOO_LARGE))
    assert (response["uid"], response["allowed"]) == ("u", allowed)


def test_a_huge_chunked_review_is_answered(webhook: Any) -> None:
    connection = webhook.connect()
    connection.request("POST", "/validate", iter([HEAD, *[b" " * 1024 * 1024] * 33]), encode_chunked=True)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert answer["response"]["status"]["code"] == 413


def test_a_review_right_behind_a_huge_one_is_answered(webhook: Any, captured: Callable[[str], bytes]) -> None:
    connection = webhook.connect()
    connection.connect()
    requests = [HEAD.ljust(TOO_LARGE), captured("pod-delete.validate")]
    head = b"POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    connection.sock.sendall(b"".join(head % len(body) + body for body in requests))
    answers = []
    for _ in requests:
        response = http.client.HTTPResponse(connection.sock)
        response.begin()
        answers.append((response.status, json.loads(response.read())["response"]["allowed"]))
    connection.close()
    assert answers == [(200, False), (200, True)]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_healthy(webhook: Any, path: str) -> None:
    with urllib.request.urlopen(webhook.health_url + path) as answer:  # noqa: S310 -- on loopback, the URL is our own
        assert (answer.status, answer.read()) == (200, b"ok\n")


def test_a_timeout_in_the_query(webhook: Any, captured: Callable[[str], bytes]) -> None:
    status, _, _ = webhook.request("POST", "/validate?timeout=10s", captured("pod-delete.validate"))
    assert status == 200


def test_many_reviews_on_one_connection(webhook: Any, captured: Callable[[str], bytes]) -> None:
    connection = webhook.connect()
    statuses = set()
    for _ in range(1000):
        connection.request("POST", "/validate", captured("pod-exec-connect.mutate"))
        response = connection.getresponse()
        response.read()
        statuses.add((response.status, response.headers["Connection"]))
    connection.close()
    assert statuses == {(200, None)}


def test_http_1_1_is_agreed_on(webhook: Any) -> None:
    address = urlsplit(webhook.url)
    trust = ssl.create_default_context(cafile=webhook.ca_file)
    trust.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection((address.hostname, address.port)) as plain,
        trust.wrap_socket(plain, server_hostname="localhost") as tls,
    ):
        assert tls.selected_alpn_protocol() == "http/1.1"


def test_says_how_to_register_it(webhook: Any, configured: Path) -> None:
    files = f"--ca-file {webhook.ca_file} --policy-file {configured}"
    command = f"  gpugate registration --url {webhook.url} {files} | kubectl apply -f -"
    assert command in webhook.announced


def test_logs_one_line_for_a_denial(webhook: Any, captured: Callable[[str], bytes]) -> None:
    uid = webhook.validate(captured("nodepool-create-unlimited.validate"))["uid"]
    assert eventually(lambda: uid in webhook.log_file.read_text())
    lines = webhook.log_file.read_text().splitlines()
    assert {json.loads(line)["decision"] for line in lines if uid in line} == {"deny"}


def test_a_policy_file_is_in_force(
    start_webhook: Any, captured: Callable[[str], bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("policy") / "policy.yaml"
    file.write_text("apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: audit\n")
    response = start_webhook(file).validate(captured("nodepool-create-unlimited.validate"))
    assert response["allowed"]
    assert "nodepools/missing-gpu-limit" in response["auditAnnotations"]["record"].split(",")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpugate.webhook.cli.main", "serve", "--host", "127.0.0.1"]
    command += ["--port", "0", "--health-port", "0"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)  # noqa: S603 -- ours


def test_stops_on_sigterm(start_webhook: Any, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n")
    webhook = start_webhook(file)
    assert webhook.request("GET", "/validate")[0] == 405
    assert webhook.stop() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--policy-file", "nowhere.yaml"], "nowhere.yaml: no such file", id="no-policy-file"),
        pytest.param(["--host", "192.0.2.1"], "cannot listen on 192.0.2.1 port 0", id="not-our-address"),
        pytest.param(["--port", "99999"], "--port: '99999' is not a whole number from 0 to 65535", id="no-port"),
        pytest.param(["--tls-cert", "a", "--tls-key", "b"], "a: no such file", id="no-certificate"),
    ],
)
def test_cannot_start(arguments: list[str], message: str) -> None:
    ended = run(*arguments)
    assert (ended.returncode, message in ended.stderr, "Traceback" in ended.stderr) == (2, True, False)
