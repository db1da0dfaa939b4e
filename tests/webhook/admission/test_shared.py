"""The certificate and the metrics of one process."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from gpugate import __version__
from gpugate.webhook.admission.shared import Shared, now

UNTIL = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)


@dataclass
class Certificate:
    """A certificate whose files give these results, and that may be behind the shared memory."""

    result: str | None = None
    is_behind: bool = False
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.identity = SimpleNamespace(context="old", not_after=UNTIL)

    def poll(self) -> str | None:
        self.calls.append("poll")
        self.identity.context = "new"
        return self.result

    def reload(self) -> str | None:
        self.calls.append("reload")
        return self.result


class Metrics:
    """Metrics that record each value."""

    def __init__(self) -> None:
        self.values: list[tuple[Any, ...]] = []

    def built(self, version: str) -> None:
        self.values.append(("version", version))

    def certificate(self, not_after: dt.datetime) -> None:
        self.values.append(("expires", not_after))

    def certificate_reloaded(self, ok: bool) -> None:  # noqa: FBT001 -- the signature of the metrics
        self.values.append(("certificate", ok))

    def reloaded(self, generation: str, ok: bool) -> None:  # noqa: FBT001 -- as above
        self.values.append((generation, ok))


def shared(certificate: Certificate) -> Shared:
    parts: dict[str, Any] = dict.fromkeys(Shared.__slots__)
    return Shared(
        **parts | {"certificate": certificate, "metrics": Metrics(), "rules": SimpleNamespace(generation="3f2a")}
    )


@pytest.mark.parametrize(
    ("result", "reported"),
    [
        (None, []),
        ("", [("certificate", True), ("expires", UNTIL)]),
        ("invalid", [("certificate", False), ("expires", UNTIL)]),
    ],
    ids=["unchanged", "loaded", "invalid"],
)
@pytest.mark.parametrize(("force", "call"), [(False, "poll"), (True, "reload")], ids=["a tick", "a SIGHUP"])
def test_the_result_of_a_load_is_reported(
    result: str | None,
    reported: list[Any],
    force: bool,  # noqa: FBT001 -- a table's column
    call: str,
) -> None:
    process = shared(Certificate(result))
    assert process.poll_certificate(force=force) == result
    assert (process.certificate.calls, process.metrics.values) == ([call], reported)  # type: ignore[attr-defined] # the classes above


@pytest.mark.parametrize(("is_behind", "context"), [(False, "old"), (True, "new")], ids=["current", "behind"])
def test_a_connection_gets_the_newest_certificate(is_behind: bool, context: str) -> None:  # noqa: FBT001 -- a table's column
    assert shared(Certificate(is_behind=is_behind)).context() == context


def test_the_start_is_reported() -> None:
    process = shared(Certificate())
    process.report_start()
    assert set(process.metrics.values) == {  # type: ignore[attr-defined] # as above
        ("version", __version__),
        ("3f2a", True),
        ("expires", UNTIL),
        ("certificate", True),
    }


def test_the_time_has_a_time_zone() -> None:
    assert now().tzinfo is dt.UTC
