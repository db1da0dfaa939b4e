from __future__ import annotations

import datetime as dt
import errno
from typing import TYPE_CHECKING

import pytest

from gpugate.certs.pki import certificate_authority, server_certificate
from gpugate.webhook.admission.certificate import Certificate, names
from gpugate.webhook.admission.options import ServeError, ServeOptions

if TYPE_CHECKING:
    from pathlib import Path

NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


@pytest.fixture
def given(tmp_path: Path) -> tuple[Path, Path]:
    authority = certificate_authority("ca", now=NOW, lifetime=DAY)
    pair = server_certificate(authority, ["localhost"], now=NOW, lifetime=DAY)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    return certificate, key


def test_a_given_certificate_is_used(given: tuple[Path, Path]) -> None:
    assert (
        Certificate(ServeOptions("127.0.0.1", 0, tls_cert=given[0], tls_key=given[1]), NOW).identity.authority is None
    )


def test_one_is_made_when_none_is_given(tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.crt"
    made = Certificate(ServeOptions("127.0.0.1", 0, ca_file=ca_file), NOW).identity
    assert made.authority == ca_file.read_bytes()


@pytest.mark.parametrize(
    ("host", "san", "expected"),
    [
        pytest.param("127.0.0.1", (), ("127.0.0.1", "localhost", "::1"), id="loopback"),
        pytest.param("10.0.0.1", ("gpugate.example",), ("gpugate.example", "10.0.0.1", "localhost"), id="named"),
        pytest.param("0.0.0.0", (), ("localhost", "127.0.0.1", "::1"), id="every-address"),  # noqa: S104 -- not bound
    ],
)
def test_names_of_a_made_certificate(host: str, san: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert names(ServeOptions(host, 0, tls_san=san))[:3] == expected


def test_missing_file(given: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=r"nowhere\.crt: no such file"):
        Certificate(ServeOptions("127.0.0.1", 0, tls_cert=tmp_path / "nowhere.crt", tls_key=given[1]), NOW)


def test_swapped_files(given: tuple[Path, Path]) -> None:
    with pytest.raises(ServeError, match=r"tls\.key.*PEM"):
        Certificate(ServeOptions("127.0.0.1", 0, tls_cert=given[1], tls_key=given[0]), NOW)


def test_name_that_cannot_be() -> None:
    with pytest.raises(ServeError, match="two words"):
        Certificate(ServeOptions("127.0.0.1", 0, tls_san=("two words",)), NOW)


def test_ca_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="is a directory"):
        Certificate(ServeOptions("127.0.0.1", 0, ca_file=tmp_path), NOW)


@pytest.fixture
def in_force(given: tuple[Path, Path]) -> Certificate:
    return Certificate(ServeOptions("127.0.0.1", 0, tls_cert=given[0], tls_key=given[1]), NOW)


def another(given: tuple[Path, Path], lifetime: dt.timedelta) -> None:
    authority = certificate_authority("another", now=NOW, lifetime=lifetime)
    pair = server_certificate(authority, ["localhost"], now=NOW, lifetime=lifetime)
    given[0].write_bytes(pair.certificate)
    given[1].write_bytes(pair.key)


def test_files_that_did_not_change_are_left_alone(in_force: Certificate) -> None:
    assert in_force.poll() is None


def test_files_that_changed_are_taken_up(in_force: Certificate, given: tuple[Path, Path]) -> None:
    before = in_force.identity
    another(given, 2 * DAY)
    assert in_force.poll() == ""
    assert (in_force.identity.not_after, in_force.identity.context is before.context) == (NOW + 2 * DAY, False)


@pytest.mark.parametrize(
    ("spoiled", "says"),
    [
        pytest.param(b"", "PEM", id="emptied"),
        pytest.param(b"-----BEGIN CERTIFICATE-----\nMIIB", "PEM", id="truncated"),
        pytest.param(None, "no such file", id="removed"),
    ],
)
def test_files_that_cannot_be_used_leave_the_last_good_ones(
    in_force: Certificate, given: tuple[Path, Path], spoiled: bytes | None, says: str
) -> None:
    before = in_force.identity
    if spoiled is None:
        given[0].unlink()
    else:
        given[0].write_bytes(spoiled)
    error = in_force.poll()
    assert error is not None
    assert says in error
    assert in_force.identity is before


def test_a_certificate_that_only_openssl_reads_leaves_the_last_good_one(
    in_force: Certificate, given: tuple[Path, Path]
) -> None:
    before = in_force.identity
    another(given, 2 * DAY)
    given[0].write_bytes(given[0].read_bytes().replace(b" CERTIFICATE", b" TRUSTED CERTIFICATE"))
    assert "write it as PEM of type CERTIFICATE" in (in_force.poll() or "")
    assert in_force.identity is before


def test_whatever_breaks_while_it_is_read_leaves_the_last_good_one(
    in_force: Certificate, given: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    before = in_force.identity
    another(given, 2 * DAY)
    monkeypatch.setattr("gpugate.webhook.admission.certificate.server_context", full)
    assert "cannot be used (OSError" in (in_force.poll() or "")
    assert in_force.identity is before


def test_one_of_two_files_alone_is_not_taken_up(in_force: Certificate, given: tuple[Path, Path]) -> None:
    before, key = in_force.identity, given[1].read_bytes()
    another(given, 2 * DAY)
    written, _ = given[1].read_bytes(), given[1].write_bytes(key)
    assert "does not belong" in (in_force.poll() or "")
    assert in_force.identity is before
    given[1].write_bytes(written)
    assert in_force.poll() == ""


def test_a_link_that_was_turned_is_noticed(tmp_path: Path) -> None:
    for name, lifetime in (("one", DAY), ("two", 2 * DAY)):
        (tmp_path / name).mkdir()
        another((tmp_path / name / "tls.crt", tmp_path / name / "tls.key"), lifetime)
    data = tmp_path / "..data"
    data.symlink_to(tmp_path / "one")
    options = ServeOptions("127.0.0.1", 0, tls_cert=data / "tls.crt", tls_key=data / "tls.key")
    certificate = Certificate(options, NOW)
    (tmp_path / "..tmp").symlink_to(tmp_path / "two")
    (tmp_path / "..tmp").rename(data)
    assert (certificate.poll(), certificate.identity.not_after) == ("", NOW + 2 * DAY)


def test_a_made_certificate_never_changes() -> None:
    certificate = Certificate(ServeOptions("127.0.0.1", 0), NOW)
    assert (certificate.poll(), certificate.reload()) == (None, None)
