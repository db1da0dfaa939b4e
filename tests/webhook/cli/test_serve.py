from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.admission import serve, serve_command
from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.admission.options import Recording, ServeOptions
from gpugate.webhook.cluster.options import ClusterOptions

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


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(["--workers", "3"], {"workers": 3}, id="workers"),
        pytest.param(["--health-port", "9090"], {"health_port": 9090}, id="health-port"),
        pytest.param(["--drain", "0"], {"drain_seconds": 0}, id="drain"),
        pytest.param(["--max-connections", "10"], {"limits": Limits(connections=10)}, id="connections"),
        pytest.param(["--max-connections-per-source", "5"], {"limits": Limits(per_source=5)}, id="per-source"),
        pytest.param(["--trace"], {"trace": True}, id="trace"),
        pytest.param(["--shadow-policy-file", "c.yaml"], {"shadow_policy_file": Path("c.yaml")}, id="shadow"),
        pytest.param(["--record", "d"], {"recording": Recording(Path("d"))}, id="record"),
        pytest.param(["--record-fraction", "0.5", "--record-max", "1Gi"], {"recording": None}, id="no record"),
        pytest.param(
            ["--record", "d", "--record-fraction", "0.5", "--record-max", "1Gi"],
            {"recording": Recording(Path("d"), 0.5, 1 << 30)},
            id="part of a record",
        ),
        pytest.param(["--kubeconfig", "k"], {"cluster": ClusterOptions(Path("k"))}, id="kubeconfig"),
        pytest.param(["--context", "c"], {"cluster": ClusterOptions(context="c")}, id="context"),
    ],
)
def test_each_flag_sets_its_option(
    gpugate: Run, served: list[ServeOptions], flags: list[str], expected: dict[str, Any]
) -> None:
    gpugate("serve", *flags)

    assert {name: getattr(served[0], name) for name in expected} == expected


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("CLIENT_CA", "ca.crt", {"client_ca": Path("ca.crt")}),
        ("CLIENT_NAME", "a,b", {"client_names": ("a", "b")}),
        ("CA_FILE", "ca.crt", {"ca_file": Path("ca.crt")}),
        ("SHADOW_POLICY_FILE", "c.yaml", {"shadow_policy_file": Path("c.yaml")}),
        ("POLICY_PATHS", "acme:b/acme", {"policy_paths": (Path("acme:b/acme"),)}),
        ("RECORD", "d", {"recording": Recording(Path("d"))}),
        ("HEALTH_PORT", "9090", {"health_port": 9090}),
        ("WORKERS", "3", {"workers": 3}),
        ("DRAIN", "5", {"drain_seconds": 5}),
        ("MAX_CONNECTIONS", "10", {"limits": Limits(connections=10)}),
        ("MAX_CONNECTIONS_PER_SOURCE", "5", {"limits": Limits(per_source=5)}),
        ("NAMESPACE", "ops", {"namespace": "ops"}),
        ("SERVICE", "gate", {"service": "gate"}),
    ],
)
def test_each_variable_sets_its_option(
    gpugate: Run,
    served: list[ServeOptions],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    expected: dict[str, Any],
) -> None:
    monkeypatch.setenv(f"GPUGATE_{variable}", value)

    gpugate("serve")

    assert {name: getattr(served[0], name) for name in expected} == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [pytest.param([], ClusterOptions(in_cluster=True), id="looked-at"), pytest.param(["--no-cluster"], None, id="not")],
)
def test_the_cluster_around_a_pod(
    gpugate: Run,
    served: list[ServeOptions],
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    expected: ClusterOptions | None,
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")

    gpugate("serve", *flags)

    assert served[0].cluster == expected


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("GPUGATE_PORT", "abc", "GPUGATE_PORT (or --port): 'abc' is not a whole number from 0 to 65535"),
        ("GPUGATE_PORT", "70000", "GPUGATE_PORT (or --port): '70000' is not a whole number from 0 to 65535"),
        ("GPUGATE_WORKERS", "0", "GPUGATE_WORKERS (or --workers): '0' is not a whole number from 1 to 64"),
        (
            "GPUGATE_RECORD_FRACTION",
            "0",
            "GPUGATE_RECORD_FRACTION (or --record-fraction): '0' is not a number above 0 and up to 1",
        ),
        ("GPUGATE_RECORD_FRACTION", "nan", "'nan' is not a number above 0 and up to 1"),
        ("GPUGATE_RECORD_MAX", "9", "GPUGATE_RECORD_MAX (or --record-max): '9' is not a size from 1Mi to 1Ti"),
        ("GPUGATE_DRAIN", "-1", "GPUGATE_DRAIN (or --drain): '-1' is not a whole number from 0 to 600"),
    ],
)
def test_123_a_variable_that_is_no_number_is_named(
    gpugate: Run, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv(variable, value)

    ran = gpugate("serve")

    assert (ran.code, says in ran.err) == (2, True)


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


RANGES = {
    "--port": (0, 65535),
    "--health-port": (0, 65535),
    "--workers": (1, 64),
    "--drain": (0, 600),
    "--max-connections": (1, 1_000_000),
    "--max-connections-per-source": (1, 1_000_000),
}


@pytest.mark.parametrize(("flag", "least", "most"), [(flag, *limits) for flag, limits in RANGES.items()])
def test_the_range_of_each_number(gpugate: Run, served: list[ServeOptions], flag: str, least: int, most: int) -> None:
    codes = [gpugate("serve", f"{flag}={value}").code for value in (least - 1, least, most, most + 1)]

    assert (codes, len(served)) == ([2, 0, 0, 2], 2)


@pytest.mark.parametrize("flags", [["--tls-cert", "a"], ["--tls-key", "a"]], ids=" ".join)
def test_a_certificate_and_its_key_go_together(gpugate: Run, served: list[ServeOptions], flags: list[str]) -> None:
    ran = gpugate("serve", *flags)

    assert (ran.code, ran.err, served) == (2, "error: --tls-cert and --tls-key go together\n", [])


# What the help shows for a value is also what the completion of shells offers for it.
HELP = {
    "options": {},
    "addresses": {"--host": "HOST", "--port": "N", "--health-port": "N"},
    "processes and limits": {
        "--workers": "N",
        "--drain": "N",
        "--max-connections": "N",
        "--max-connections-per-source": "N",
    },
    "policies": {
        "--policy-file": "FILE",
        "--shadow-policy-file": "FILE",
        "--policy-path": "DIR",
        "--cluster-name": "NAME",
        "--cluster-region": "NAME",
        "--cluster-label": "KEY",
    },
    "record of reviews": {"--record": "DIR", "--record-fraction": "F", "--record-max": "SIZE"},
    "cluster data": {"--kubeconfig": "FILE", "--context": "NAME", "--no-cluster": ""},
    "certificate files": {"--tls-cert": "FILE", "--tls-key": "FILE", "--ca-file": "FILE", "--tls-san": "NAME"},
    "managed certificates (with --certificate-secret)": {
        "--certificate-secret": "NAME",
        "--namespace": "NAME",
        "--service": "NAME",
        "--webhook-configuration": "NAME",
        "--url": "URL",
        "--authority-life": "TIME",
        "--authority-rotation": "TIME",
        "--certificate-life": "TIME",
        "--propagation": "TIME",
    },
    "expected webhook configurations (to report differences)": {
        "--karpenter-user": "USER",
        "--without": "GROUP",
        "--only-namespace": "NAME",
    },
    "client certificates": {"--client-ca": "FILE", "--client-name": "NAME"},
    "traces": {"--trace": ""},
}


def test_the_help_groups_the_flags_and_names_their_values(gpugate: Run) -> None:
    found: dict[str, dict[str, str]] = {}
    for heading, flag, value in re.findall(
        r"^(?:(\w.*):|  (--[a-z-]+) ?([A-Z]*).*)$", gpugate("serve", "--help").out, re.MULTILINE
    ):
        if flag:
            found[list(found)[-1]][flag] = value
        else:
            found[heading] = {}
    del found["examples"]

    assert found == HELP
    assert [action.dest for action in serve_command.parser()._actions if not action.help] == []


def without(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the import of the server fail, because it needs a module that is missing."""
    real = builtins.__import__

    def fail(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "gpugate.webhook.admission.serve":
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", fail)


def test_without_the_extra_it_says_what_to_install(gpugate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    without("uvicorn", monkeypatch)

    ran = gpugate("serve")

    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: uvicorn is not installed")


def test_a_missing_module_of_gpugate_is_a_bug(gpugate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    without("gpugate.webhook.nowhere", monkeypatch)

    with pytest.raises(ModuleNotFoundError, match=r"gpugate\.webhook\.nowhere"):
        gpugate("serve")
