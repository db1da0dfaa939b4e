from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from certificate_files import AUTHORITY, BAD, DAY, GOOD, NAME, NOW, OTHER, PAIR
from client_certificates import client_certificate
from handshakes import shaken, trusting

from gpugate.certs.pki import KeyPair, certificate_authority, server_certificate
from gpugate.webhook.admission.certificate import Certificate, LeafMemory, names
from gpugate.webhook.admission.options import ServeError, ServeOptions

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable
    from pathlib import Path

CLIENTS = certificate_authority("clients", now=NOW, lifetime=DAY)


class Clock:
    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> dt.datetime:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


def put(folder: Path, pair: KeyPair) -> None:
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)


def given_in(folder: Path, *, client_ca: bool = False) -> ServeOptions:
    return ServeOptions(
        "127.0.0.1",
        0,
        tls_cert=folder / "tls.crt",
        tls_key=folder / "tls.key",
        tls_san=(NAME,),
        client_ca=folder / "ca.crt" if client_ca else None,
    )


@pytest.fixture
def in_force(tmp_path: Path, clock: Clock) -> Certificate:
    put(tmp_path, PAIR)
    return Certificate(given_in(tmp_path), clock)


def lasting(lifetime: dt.timedelta) -> KeyPair:
    return server_certificate(AUTHORITY, [NAME], now=NOW, lifetime=lifetime)


def test_one_is_made_when_none_is_given(tmp_path: Path, clock: Clock) -> None:
    ca_file = tmp_path / "ca.crt"
    created = Certificate(ServeOptions("127.0.0.1", 0, ca_file=ca_file), clock).identity
    assert created.authority == ca_file.read_bytes()
    # It is never renewed.
    assert created.not_after == NOW + 365 * DAY


def test_one_is_made_when_only_a_key_is_given(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "tls.key").write_bytes(PAIR.key)
    created = Certificate(ServeOptions("127.0.0.1", 0, tls_key=tmp_path / "tls.key"), clock).identity
    assert created.authority is not None


@pytest.mark.parametrize(
    ("host", "san", "expected"),
    [
        pytest.param("127.0.0.1", (), ("127.0.0.1", "localhost", "::1"), id="loopback"),
        pytest.param("10.0.0.1", ("gpugate.example",), ("gpugate.example", "10.0.0.1", "localhost"), id="named"),
        pytest.param("0.0.0.0", (), ("localhost", "127.0.0.1", "::1"), id="every-address"),  # noqa: S104 -- not bound
        pytest.param("::", (), ("localhost", "127.0.0.1", "::1"), id="every-IPv6-address"),
        pytest.param("", (), ("localhost", "127.0.0.1", "::1"), id="no-address"),
    ],
)
def test_names_of_a_made_certificate(host: str, san: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert names(ServeOptions(host, 0, tls_san=san))[:3] == expected


def test_name_that_cannot_be(clock: Clock) -> None:
    with pytest.raises(ServeError, match="two words"):
        Certificate(ServeOptions("127.0.0.1", 0, tls_san=("two words",)), clock)


def test_ca_file_that_cannot_be_written(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(ServeError, match="is a directory"):
        Certificate(ServeOptions("127.0.0.1", 0, ca_file=tmp_path), clock)


def test_a_created_certificate_never_changes(clock: Clock) -> None:
    certificate = Certificate(ServeOptions("127.0.0.1", 0), clock)
    assert (certificate.poll(), certificate.reload()) == (None, None)


@pytest.mark.parametrize("pair", GOOD.values(), ids=GOOD)
def test_a_given_certificate_is_used(tmp_path: Path, clock: Clock, pair: KeyPair) -> None:
    put(tmp_path, pair)
    assert Certificate(given_in(tmp_path), clock).identity.authority is None


@pytest.mark.parametrize(("pair", "says"), BAD.values(), ids=BAD)
def test_the_server_does_not_start_with_one_that_cannot_be_used(
    tmp_path: Path, clock: Clock, pair: KeyPair, says: str
) -> None:
    put(tmp_path, pair)
    with pytest.raises(ServeError) as raised:
        Certificate(given_in(tmp_path), clock)
    assert str(raised.value).startswith(str(tmp_path))
    assert says in str(raised.value)


def test_missing_file(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(ServeError, match=r"tls\.crt: no such file"):
        Certificate(given_in(tmp_path), clock)


@pytest.mark.parametrize("pair", [pair for pair, _ in BAD.values()], ids=BAD)
def test_handshakes_use_the_last_valid_certificate(in_force: Certificate, tmp_path: Path, pair: KeyPair) -> None:
    # The dates of these certificates are independent of the local clock.
    client = trusting(AUTHORITY.certificate)
    client.verify_flags |= 0x200000  # type: ignore[operator]  # X509_V_FLAG_NO_CHECK_TIME
    put(tmp_path, pair)
    refused, before = in_force.poll(), in_force.identity
    assert refused
    assert "tls." in refused
    assert before.not_after == NOW + DAY
    assert shaken(in_force.identity.context, client, NAME)


def test_files_that_did_not_change_are_left_alone(in_force: Certificate) -> None:
    assert in_force.poll() is None


def test_files_that_changed_are_taken_up(in_force: Certificate, tmp_path: Path) -> None:
    before = in_force.identity
    put(tmp_path, lasting(2 * DAY))
    assert in_force.poll() == ""
    assert (in_force.identity.not_after, in_force.identity.context is before.context) == (NOW + 2 * DAY, False)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def link_out(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "removed": (lambda path: path.unlink(), "tls.crt: no such file"),
    "fifo": (fifo, "tls.crt: not a regular file"),
    "two-gigabytes": (lambda path: os.truncate(path, 2 * 1024**3), "tls.crt: larger than 1 MiB"),
    "link-out-of-the-folder": (link_out, "tls.crt: a symbolic link points outside"),
}


@pytest.mark.parametrize(("spoil", "says"), SPOILED.values(), ids=SPOILED)
def test_a_path_without_a_file_keeps_the_last_valid_one(
    in_force: Certificate, tmp_path: Path, spoil: Callable[[Path], object], says: str
) -> None:
    before = in_force.identity
    spoil(tmp_path / "tls.crt")
    assert says in (in_force.poll() or "")
    assert in_force.identity is before


def test_a_reason_is_returned_once(in_force: Certificate, tmp_path: Path) -> None:
    put(tmp_path, BAD["expired"][0])
    assert [bool(in_force.poll()) for _ in range(3)] == [True, False, False]


def test_a_refused_certificate_is_used_once_it_is_valid(in_force: Certificate, tmp_path: Path, clock: Clock) -> None:
    put(tmp_path, server_certificate(AUTHORITY, [NAME], now=NOW + DAY, lifetime=DAY))
    assert "not valid before" in (in_force.poll() or "")
    clock.time = NOW + DAY - DAY / 24
    assert (in_force.poll(), in_force.identity.not_after) == ("", NOW + 2 * DAY)


def test_one_that_expired_is_no_worse_than_one_that_expired_before(
    in_force: Certificate, tmp_path: Path, clock: Clock
) -> None:
    clock.time = NOW + 50 * DAY
    put(tmp_path, lasting(2 * DAY))
    assert (in_force.poll(), in_force.identity.not_after) == ("", NOW + 2 * DAY)


def test_a_disk_that_was_full_is_tried_again(
    in_force: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    before = in_force.identity
    put(tmp_path, lasting(2 * DAY))
    with monkeypatch.context() as patched:
        patched.setattr("gpugate.webhook.admission.certificate.server_context", full)
        assert "cannot be used (OSError" in (in_force.poll() or "")
    assert in_force.identity is before
    assert (in_force.poll(), in_force.identity.not_after) == ("", NOW + 2 * DAY)


def test_one_of_two_files_alone_is_not_loaded(in_force: Certificate, tmp_path: Path) -> None:
    before = in_force.identity
    put(tmp_path, KeyPair(OTHER.certificate, PAIR.key))
    assert "does not match" in (in_force.poll() or "")
    assert in_force.identity is before
    put(tmp_path, OTHER)
    assert in_force.poll() == ""


def test_a_link_that_was_turned_is_noticed(tmp_path: Path, clock: Clock) -> None:
    for name, lifetime in (("one", DAY), ("two", 2 * DAY)):
        (tmp_path / name).mkdir()
        put(tmp_path / name, lasting(lifetime))
    data = tmp_path / "..data"
    data.symlink_to(tmp_path / "one")
    certificate = Certificate(given_in(data), clock)
    (tmp_path / "..tmp").symlink_to(tmp_path / "two")
    (tmp_path / "..tmp").rename(data)
    assert (certificate.poll(), certificate.identity.not_after) == ("", NOW + 2 * DAY)


def test_a_world_writable_folder(in_force: Certificate, tmp_path: Path) -> None:
    assert in_force.warnings == ()
    tmp_path.chmod(0o777)
    (warning,) = in_force.warnings
    assert warning.startswith(f"{tmp_path}: every user can replace the files in it")


@pytest.fixture
def asking(tmp_path: Path, clock: Clock) -> Certificate:
    put(tmp_path, PAIR)
    (tmp_path / "ca.crt").write_bytes(CLIENTS.certificate)
    return Certificate(given_in(tmp_path, client_ca=True), clock)


def let_in(certificate: Certificate, authority: KeyPair) -> bool:
    client = trusting(AUTHORITY.certificate, client_certificate(authority, now=NOW))
    context = certificate.identity.context
    for each in (client, context):
        each.verify_flags |= 0x200000  # type: ignore[operator]  # X509_V_FLAG_NO_CHECK_TIME
    try:
        shaken(context, client, NAME)
    except OSError:
        return False
    return True


def test_authorities_of_clients_are_taken_up_again(asking: Certificate, tmp_path: Path) -> None:
    following = certificate_authority("following", now=NOW, lifetime=DAY)
    seen = [(let_in(asking, CLIENTS), let_in(asking, following))]
    for bundle in (CLIENTS.certificate + following.certificate, following.certificate):
        (tmp_path / "ca.crt").write_bytes(bundle)
        assert asking.poll() == ""
        seen.append((let_in(asking, CLIENTS), let_in(asking, following)))
    assert seen == [(True, False), (True, True), (False, True)]


@pytest.mark.parametrize("spoiled", [b"", b"junk", CLIENTS.certificate[:99]], ids=["emptied", "junk", "truncated"])
def test_clients_are_never_let_in_without_authorities(asking: Certificate, tmp_path: Path, spoiled: bytes) -> None:
    (tmp_path / "ca.crt").write_bytes(spoiled)
    assert "ca.crt: " in (asking.poll() or "")
    assert (let_in(asking, CLIENTS), let_in(asking, AUTHORITY)) == (True, False)


def test_a_created_certificate_with_client_authentication(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "ca.crt").write_bytes(CLIENTS.certificate)
    certificate = Certificate(ServeOptions("127.0.0.1", 0, client_ca=tmp_path / "ca.crt"), clock)
    created = certificate.identity.authority
    (tmp_path / "ca.crt").write_bytes(OTHER.certificate + CLIENTS.certificate)
    assert (certificate.poll(), certificate.identity.authority) == ("", created)


def test_a_pair_from_memory_does_not_wait_for_the_authorities_of_clients(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "ca.crt").write_bytes(CLIENTS.certificate)
    leafs = LeafMemory()
    options = ServeOptions("127.0.0.1", 0, client_ca=tmp_path / "ca.crt")
    certificate = Certificate(options, clock, leafs)
    (tmp_path / "ca.crt").write_bytes(b"junk")
    leafs.put(PAIR)
    assert "ca.crt: " in (certificate.poll() or "")
    assert certificate.identity.not_after == NOW + DAY
    assert (let_in(certificate, CLIENTS), let_in(certificate, AUTHORITY)) == (True, False)
