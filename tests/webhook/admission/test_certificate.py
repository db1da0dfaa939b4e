from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from gpugate.certs.pki import certificate_authority, server_certificate
from gpugate.webhook.admission.certificate import identity, names
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
    assert identity(ServeOptions("127.0.0.1", 0, None, *given), NOW).authority is None


def test_one_is_made_when_none_is_given(tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.crt"
    made = identity(ServeOptions("127.0.0.1", 0, ca_file=ca_file), NOW)
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
        identity(ServeOptions("127.0.0.1", 0, None, tmp_path / "nowhere.crt", given[1]), NOW)


def test_swapped_files(given: tuple[Path, Path]) -> None:
    with pytest.raises(ServeError, match=r"tls\.key.*PEM"):
        identity(ServeOptions("127.0.0.1", 0, None, given[1], given[0]), NOW)


def test_name_that_cannot_be() -> None:
    with pytest.raises(ServeError, match="two words"):
        identity(ServeOptions("127.0.0.1", 0, tls_san=("two words",)), NOW)


def test_ca_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="is a directory"):
        identity(ServeOptions("127.0.0.1", 0, ca_file=tmp_path), NOW)
