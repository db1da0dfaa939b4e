"""The client against a registry on a socket: digests, sizes, credentials, redirects and answers that never end."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import certifi
import pytest

from gpugate.webhook.bundle.credentials import Login
from gpugate.webhook.bundle.reference import digest_of, parse_reference
from gpugate.webhook.bundle.registry import Registry, RegistryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.server import BaseHTTPRequestHandler

    from conftest import FakeRegistry

LONG = 60.0
TOKEN = "t0p-secret"  # noqa: S105 -- of this test


def client(registry: FakeRegistry, login: Login | None = None, timeout: float = LONG) -> Registry:
    return Registry(parse_reference(f"{registry.host}/a:1"), login, timeout)


def raw(text: bytes) -> Callable[[BaseHTTPRequestHandler], bool]:
    """Answer with some bytes, and close the connection."""

    def answer(handler: BaseHTTPRequestHandler) -> bool:
        handler.wfile.write(text)
        handler.close_connection = True
        return True

    return answer


def replies(status: int, body: bytes = b"", **headers: str) -> Callable[[BaseHTTPRequestHandler], bool]:
    def answer(handler: BaseHTTPRequestHandler) -> bool:
        handler.reply(status, body, **headers)
        return True

    return answer


def test_what_was_pushed_is_read(registry: FakeRegistry) -> None:
    client(registry).push_blob(b"content")
    client(registry).push_manifest("1", b"{}")
    assert client(registry).blob(digest_of(b"content"), 7, 100) == b"content"
    assert client(registry).manifest("1").data == b"{}"


def test_a_blob_that_the_registry_has_is_not_sent_again(registry: FakeRegistry) -> None:
    client(registry).push_blob(b"content")
    client(registry).push_blob(b"content")
    assert [method for method, _, _ in registry.requests] == ["HEAD", "POST", "PUT", "HEAD"]


def test_a_manifest_of_another_digest_is_refused(registry: FakeRegistry) -> None:
    digest = registry.put("a", "1", {})
    registry.manifests["a", digest] = ("application/vnd.oci.image.manifest.v1+json", b'{"other": 1}')
    with pytest.raises(RegistryError, match=f"has the digest .*, not {digest}"):
        client(registry).manifest(digest)


def test_a_tag_of_another_digest_than_the_registry_says_is_refused(registry: FakeRegistry) -> None:
    registry.answer = replies(200, b"{}", Docker_Content_Digest=digest_of(b"[]"))
    with pytest.raises(RegistryError, match="has the digest"):
        client(registry).manifest("1")


@pytest.mark.parametrize("content", [b"CONTENT", b"conten", b""])
def test_a_blob_with_other_content_is_refused(registry: FakeRegistry, content: bytes) -> None:
    registry.blobs[digest_of(b"content")] = content
    with pytest.raises(RegistryError, match="another digest or size"):
        client(registry).blob(digest_of(b"content"), 7, 100)


def test_a_blob_larger_than_it_says_is_not_read(registry: FakeRegistry) -> None:
    registry.blobs[digest_of(b"content")] = bytes(1000)
    with pytest.raises(RegistryError, match="the answer is larger than 7 bytes"):
        client(registry).blob(digest_of(b"content"), 7, 100)


def test_a_blob_larger_than_the_limit_is_not_asked_for(registry: FakeRegistry) -> None:
    with pytest.raises(RegistryError, match="more than the limit of 100"):
        client(registry).blob(digest_of(b"content"), 101, 100)
    assert registry.requests == []


def test_an_endless_answer_is_cut_off(registry: FakeRegistry) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(bytes(1 << 16))
        except OSError:
            return True

    registry.answer = answer
    with pytest.raises(RegistryError, match="larger than 1,048,576 bytes"):
        client(registry).manifest("1")


def test_an_answer_that_does_not_come_is_given_up(registry: FakeRegistry) -> None:
    given_up = threading.Event()

    def answer(_: BaseHTTPRequestHandler) -> bool:
        assert given_up.wait(LONG)
        return True

    registry.answer = answer
    try:
        with pytest.raises(RegistryError, match=r"no complete answer within 0.2 s: raise --timeout"):
            client(registry, timeout=0.2).manifest("1")
    finally:
        given_up.set()


def test_an_answer_that_trickles_is_given_up(registry: FakeRegistry) -> None:
    given_up = threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.end_headers()
        try:
            # Each byte comes sooner than the timeout of a single read.
            while not given_up.wait(0.05):
                handler.wfile.write(b" ")
        except OSError:
            pass
        handler.close_connection = True
        return True

    registry.answer = answer
    try:
        with pytest.raises(RegistryError, match=r"no complete answer within 1 s"):
            client(registry, timeout=1).manifest("1")
    finally:
        given_up.set()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (raw(b"SSH-2.0-OpenSSH\r\n"), "the answer is not HTTP"),
        (raw(b""), "closed the connection without an answer"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"), "ended within the answer"),
        (replies(400), "HTTP status 400: a registry on this machine is asked without TLS"),
        (replies(403), "403: these credentials may not do this"),
        (replies(429), "429: too many requests"),
        (replies(500), "HTTP status 500"),
        (replies(418, b"not json"), "HTTP status 418"),
        (replies(503, b'{"errors": [{"code": "X", "message": "a\\u001b[2Jb"}]}'), r"the registry says: X a[^\x1b]*b"),
        (replies(307, Location="http://example.com/x"), "an address that is not https"),
        (replies(307, Location="file:///etc/passwd"), "an address that is not https"),
        (replies(307, Location="http://[::1"), "an address that is not https"),
        (replies(307), "an address that is not https"),
        (replies(307, Location="/v2/"), "more than 3 redirects"),
    ],
)
def test_a_bad_answer_is_named(
    registry: FakeRegistry, answer: Callable[[BaseHTTPRequestHandler], bool], reason: str
) -> None:
    registry.answer = answer
    with pytest.raises(RegistryError, match=reason):
        client(registry).manifest("1")


def test_a_missing_manifest_is_told_from_other_errors(registry: FakeRegistry) -> None:
    with pytest.raises(RegistryError, match="404: the registry does not have it") as raised:
        client(registry).manifest("1")
    assert raised.value.is_missing


def test_a_redirect_gets_no_credentials(registry: FakeRegistry) -> None:
    registry.token = TOKEN
    registry.blobs[digest_of(b"content")] = b"content"

    def answer(handler: BaseHTTPRequestHandler) -> bool:
        if handler.path.startswith("/storage"):
            handler.reply(200, b"content")
        elif handler.headers.get("Authorization") and "/blobs/" in handler.path:
            # The same socket by another name is another origin.
            handler.reply(307, Location=f"http://localhost:{registry.port}/storage")
        else:
            return False
        return True

    registry.answer = answer
    assert client(registry).blob(digest_of(b"content"), 7, 100) == b"content"
    assert [(path, bool(sent)) for _, path, sent in registry.requests if "storage" in path] == [("/storage", False)]


def test_a_token_is_got_once_with_the_credentials(registry: FakeRegistry) -> None:
    registry.token = TOKEN
    registry.put("a", "1", {})
    asked = client(registry, Login("user", "pass"))
    asked.manifest("1")
    asked.manifest("1")
    assert [path.partition("?")[0] for _, path, _ in registry.requests] == [
        "/v2/a/manifests/1",
        "/token",
        "/v2/a/manifests/1",
        "/v2/a/manifests/1",
    ]
    assert registry.requests[1][1:] == ("/token?service=s&scope=repository%3Aa%3Apull%2Cpush", "Basic dXNlcjpwYXNz")


def test_an_identity_token_is_exchanged_in_a_body(registry: FakeRegistry) -> None:
    registry.token = TOKEN
    registry.put("a", "1", {})
    client(registry, Login("", "", "refresh")).manifest("1")
    assert registry.requests[1] == ("POST", "/token", "")


def test_basic_authentication_sends_credentials_only_when_asked(registry: FakeRegistry) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> bool:
        if handler.headers.get("Authorization") == "Basic dXNlcjpwYXNz":
            handler.reply(200, b"{}")
        else:
            handler.reply(401, WWW_Authenticate='Basic realm="r"')
        return True

    registry.answer = answer
    client(registry, Login("user", "pass")).manifest("1")
    assert [sent for _, _, sent in registry.requests] == ["", "Basic dXNlcjpwYXNz"]


@pytest.mark.parametrize(
    "challenge",
    [
        'Bearer realm="https://[::1"',
        'Bearer realm="http://token.example.com/"',
        'Bearer service="s"',
        "Bearer",
        'Digest realm="r"',
        "",
    ],
)
def test_no_credentials_are_sent_for_a_strange_challenge(registry: FakeRegistry, challenge: str) -> None:
    registry.answer = replies(401, WWW_Authenticate=challenge)
    with pytest.raises(RegistryError):
        client(registry, Login("user", "pass")).manifest("1")
    assert {sent for _, _, sent in registry.requests} == {""}


@pytest.mark.parametrize("status", [401, 403, 500])
def test_an_error_contains_no_credentials(registry: FakeRegistry, status: int) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> bool:
        sent = handler.headers.get("Authorization", "")
        if not sent:
            handler.reply(401, WWW_Authenticate="Basic")
        else:
            said = json.dumps({"errors": [{"message": f"bad {sent} hunter2"}]})
            handler.reply(status, said.encode())
        return True

    registry.answer = answer
    login = Login("user", "hunter2")
    with pytest.raises(RegistryError, match=r"\(hidden\)") as raised:
        client(registry, login).manifest("1")
    assert "hunter2" not in str(raised.value)
    assert login.basic not in str(raised.value)
    assert "hunter2" not in repr(login)


def test_an_upload_elsewhere_gets_no_credentials(registry: FakeRegistry) -> None:
    registry.token = TOKEN

    def answer(handler: BaseHTTPRequestHandler) -> bool:
        if handler.path.startswith("/up"):
            handler.reply(201)
        elif handler.command == "POST" and handler.headers.get("Authorization"):
            handler.reply(202, Location=f"http://localhost:{registry.port}/up?state=1")
        else:
            return False
        return True

    registry.answer = answer
    digest = client(registry).push_blob(b"content")
    assert registry.requests[-1] == ("PUT", f"/up?state=1&digest={digest.replace(':', '%3A')}", "")


def test_nothing_listens() -> None:
    with pytest.raises(RegistryError, match=r"connection refused|denied|unreachable"):
        Registry(parse_reference("127.0.0.1:1/a:1"), None, LONG).manifest("1")


def test_an_invalid_authority_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    with pytest.raises(RegistryError, match="no such file"):
        Registry(parse_reference("registry.example.com/a:1"), None, LONG, file)
    file.write_text("no PEM")
    with pytest.raises(RegistryError, match="not a PEM file"):
        Registry(parse_reference("registry.example.com/a:1"), None, LONG, file)


def test_a_registry_with_an_authority_is_asked_over_tls(registry: FakeRegistry) -> None:
    asked = Registry(parse_reference(f"{registry.host}/a:1"), None, LONG, Path(certifi.where()))
    with pytest.raises(RegistryError, match=r"TLS failed|closed the connection"):
        asked.manifest("1")
