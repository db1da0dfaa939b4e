from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.certs.authorities import Periods
from gpugate.webhook.admission import serve
from gpugate.webhook.admission import serve_command as serve_certificates
from gpugate.webhook.admission.options import API_SERVER, Keeping
from gpugate.webhook.registration.entries import RiskGroup
from gpugate.webhook.registration.meant import Meant

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpugate.webhook.admission.options import ServeOptions

    Run = Callable[..., Any]

KEPT = ("--certificate-secret", "s", "--namespace", "n", "--kubeconfig", "k")
PERIODS = ("--authority-life", "--authority-rotation", "--certificate-life", "--propagation")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ServeOptions]:
    """The options of each server that would have been started."""
    options: list[ServeOptions] = []

    def record(given: ServeOptions) -> int:
        options.append(given)
        return 0

    monkeypatch.setattr(serve, "serve", record)
    return options


def test_without_a_secret_nothing_is_kept(gpugate: Run, served: list[ServeOptions]) -> None:
    gpugate("serve", "--namespace", "n", "--authority-life", "1s")
    assert [each.keeping for each in served] == [None]


def test_a_secret_turns_it_on(gpugate: Run, served: list[ServeOptions]) -> None:
    gpugate("serve", *KEPT)
    assert [each.keeping for each in served] == [Keeping("s", "n")]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--service", "x"], {"service": "x"}),
        (["--webhook-configuration", "x"], {"configuration": "x", "lease": "x"}),
        (["--url", "https://h:1"], {"url": "https://h:1"}),
        (["--tls-san", "a.b", "--tls-san", "10.0.0.1"], {"names": ("a.b", "10.0.0.1")}),
        (["--karpenter-user", "a", "--karpenter-user", "b"], {"meant": Meant(karpenter_users=("a", "b"))}),
        (["--karpenter-user", "none"], {"meant": Meant(karpenter_users=())}),
        (["--without", "pods"], {"meant": Meant(without=(RiskGroup.PODS,))}),
        (["--only-namespace", "a", "--only-namespace", "b"], {"meant": Meant(only_namespaces=("a", "b"))}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_each_flag_sets_its_option(
    gpugate: Run, served: list[ServeOptions], flags: list[str], expected: dict[str, Any]
) -> None:
    gpugate("serve", *KEPT, *flags)
    assert {name: getattr(served[0].keeping, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param([], ("gpugate.n.svc", "gpugate.n.svc.cluster.local", "gpugate.n", "gpugate"), id="service"),
        pytest.param(
            ["--service", "s", "--tls-san", "x.example"],
            ("s.n.svc", "s.n.svc.cluster.local", "s.n", "s", "x.example"),
            id="more",
        ),
        pytest.param(
            ["--url", "https://127.0.0.1:8443", "--tls-san", "gpugate"],
            ("127.0.0.1", "gpugate.n.svc", "gpugate.n.svc.cluster.local", "gpugate.n", "gpugate"),
            id="url-first",
        ),
    ],
)
def test_names_of_the_certificate(
    gpugate: Run, served: list[ServeOptions], flags: list[str], expected: tuple[str, ...]
) -> None:
    gpugate("serve", *KEPT, *flags)
    assert served[0].keeping
    assert served[0].keeping.certified_names == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", {"seconds": 90}), ("10m", {"minutes": 10}), ("24h", {"hours": 24}), ("30d", {"days": 30})],
)
def test_durations(gpugate: Run, served: list[ServeOptions], text: str, expected: dict[str, int]) -> None:
    gpugate("serve", *KEPT, "--certificate-life", text, "--authority-life", "400d")
    assert served[0].keeping
    assert served[0].keeping.periods.leaf == dt.timedelta(**expected)


def test_periods_are_those_of_the_algorithm_unless_said_otherwise(gpugate: Run, served: list[ServeOptions]) -> None:
    gpugate("serve", *KEPT)
    assert served[0].keeping
    assert served[0].keeping.periods == Periods()


@pytest.mark.parametrize("text", ["", "0s", "-5s", "5", "5 s", "5w", "1h30m", "1.5h", "s", "٣s", "99999999d"])
@pytest.mark.parametrize("flag", PERIODS)
def test_what_is_no_duration(gpugate: Run, served: list[ServeOptions], flag: str, text: str) -> None:
    ran = gpugate("serve", *KEPT, f"{flag}={text}")
    assert (ran.code, served) == (2, [])
    assert f"{flag}: {text!r} is not a duration such as 30d, 24h, 10m or 90s" in ran.err


@pytest.mark.parametrize("flag", PERIODS)
def test_a_variable_that_is_no_duration_is_named(gpugate: Run, monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    variable = f"GPUGATE_{flag.removeprefix('--').replace('-', '_').upper()}"
    monkeypatch.setenv(variable, "soon")
    ran = gpugate("serve", *KEPT)
    assert (ran.code, f"{variable} (or {flag}): 'soon' is not a duration" in ran.err) == (2, True)


CONTRADICTIONS = {
    "kept and given": (
        ["--tls-cert", "a.crt", "--tls-key", "a.key"],
        "--certificate-secret and --tls-cert exclude each other",
    ),
    "signs before it is known": (
        ["--authority-rotation", "5m", "--propagation", "10m"],
        "--authority-rotation must not be shorter than --propagation",
    ),
    "ends while it signs": (
        ["--authority-life", "60d"],
        "--authority-life must be at least twice --authority-rotation, plus",
    ),
    "shorter than a date is exact": (["--certificate-life", "3s"], "--certificate-life must be at least 4s"),
    "no cluster": (["--no-cluster"], "--certificate-secret needs a cluster"),
    "an address that is none": (["--url", "gpugate:8443"], "--url gpugate:8443: write https://HOST:PORT"),
    "an address without TLS": (["--url", "http://gpugate:8443"], "--url http://gpugate:8443: write https://"),
}


@pytest.mark.parametrize(("flags", "says"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_what_does_not_go_together(gpugate: Run, served: list[ServeOptions], flags: list[str], says: str) -> None:
    ran = gpugate("serve", *KEPT, *flags)
    assert (ran.code, served, says in ran.err) == (2, [], True)


def test_the_environment_stands_in_for_flags(
    gpugate: Run, served: list[ServeOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "KUBECONFIG": "k",
        "CERTIFICATE_SECRET": "s",
        "NAMESPACE": "n",
        "SERVICE": "svc",
        "WEBHOOK_CONFIGURATION": "c",
        "URL": "https://h:1",
        "AUTHORITY_LIFE": "20d",
        "AUTHORITY_ROTATION": "5d",
        "CERTIFICATE_LIFE": "6h",
        "PROPAGATION": "1h",
        "KARPENTER_USER": "a, b",
        "WITHOUT": "pods scaling",
        "CLIENT_NAME": "x y",
    }.items():
        monkeypatch.setenv(f"GPUGATE_{name}", value)
    gpugate("serve", "--service", "flag")
    day, hour = dt.timedelta(days=1), dt.timedelta(hours=1)
    periods = Periods(20 * day, 5 * day, 6 * hour, hour)
    meant = Meant(karpenter_users=("a", "b"), without=(RiskGroup.PODS, RiskGroup.SCALING))
    assert served[0].keeping == Keeping("s", "n", "flag", "c", "https://h:1", (), meant, periods)
    assert served[0].client_names == ("x", "y")


def test_the_namespace_is_that_of_the_pod(
    gpugate: Run, served: list[ServeOptions], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "namespace").write_text("of-the-pod\n")
    monkeypatch.setattr(serve_certificates, "_NAMESPACE_FILE", tmp_path / "namespace")
    gpugate("serve", "--certificate-secret", "s", "--kubeconfig", "k")
    assert [each.keeping and each.keeping.namespace for each in served] == ["of-the-pod"]


def test_outside_a_pod_the_namespace_has_to_be_said(gpugate: Run, served: list[ServeOptions]) -> None:
    ran = gpugate("serve", "--certificate-secret", "s", "--kubeconfig", "k")
    assert (ran.code, served) == (2, [])
    assert "--certificate-secret needs --namespace" in ran.err


def test_who_may_connect(gpugate: Run, served: list[ServeOptions], tmp_path: Path) -> None:
    gpugate("serve", "--client-ca", tmp_path / "ca.crt")
    gpugate("serve", "--client-ca", tmp_path / "ca.crt", "--client-name", "a", "--client-name", "b")
    assert [(each.client_ca, each.client_names) for each in served] == [
        (tmp_path / "ca.crt", (API_SERVER,)),
        (tmp_path / "ca.crt", ("a", "b")),
    ]
