from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.admission import serve
from gpugate.webhook.admission.options import ServeOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., Any]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ServeOptions]:
    """The options of each server that would have been started."""
    options: list[ServeOptions] = []

    def record(given: ServeOptions) -> int:
        options.append(given)
        return 0

    monkeypatch.setattr(serve, "serve", record)
    return options


def test_without_flags_it_listens_everywhere_and_makes_its_certificate(
    gpugate: Run, served: list[ServeOptions]
) -> None:
    gpugate("serve")

    assert served == [ServeOptions(host="0.0.0.0", port=8443)]  # noqa: S104 -- a Pod is reached by its address


def test_flags_become_options(gpugate: Run, served: list[ServeOptions]) -> None:
    files = ["--tls-cert", "a.crt", "--tls-key", "a.key", "--policy-file", "p.yaml", "--ca-file", "ca.crt"]
    gpugate("serve", "--host", "127.0.0.1", "--port", "0", "--tls-san", "a.svc", "--tls-san", "b.svc", *files)

    assert served == [
        ServeOptions(
            host="127.0.0.1",
            port=0,
            policy_file=Path("p.yaml"),
            tls_cert=Path("a.crt"),
            tls_key=Path("a.key"),
            tls_san=("a.svc", "b.svc"),
            ca_file=Path("ca.crt"),
        ),
    ]


def test_the_environment_stands_in_for_flags(
    gpugate: Run, served: list[ServeOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUGATE_PORT", "9443")
    monkeypatch.setenv("GPUGATE_HOST", "127.0.0.1")
    monkeypatch.setenv("GPUGATE_POLICY_FILE", "p.yaml")
    monkeypatch.setenv("GPUGATE_TLS_SAN", "a.svc,b.svc")

    gpugate("serve", "--port", "8443")

    assert served == [
        ServeOptions(host="127.0.0.1", port=8443, policy_file=Path("p.yaml"), tls_san=("a.svc", "b.svc")),
    ]


def test_a_flag_wins_over_the_environment(
    gpugate: Run, served: list[ServeOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUGATE_TLS_SAN", "a.svc")

    gpugate("serve", "--tls-san", "b.svc")

    assert [options.tls_san for options in served] == [("b.svc",)]


def test_a_port_that_is_no_number_is_wrong_usage(
    gpugate: Run, served: list[ServeOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUGATE_PORT", "https")

    assert (gpugate("serve").code, served) == (2, [])
