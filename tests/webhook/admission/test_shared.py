"""The certificate and the metrics of one process."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from gpugate import __version__
from gpugate.webhook.admission.shared import Shared, now
from gpugate.webhook.manifests.policy_file import PolicyFileError

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

    def shadow_reloaded(self, *, ok: bool) -> None:
        self.values.append(("shadow", ok))


def shared(certificate: Certificate, **others: Any) -> Shared:
    parts: dict[str, Any] = dict.fromkeys(Shared.__slots__)
    return Shared(
        **parts
        | {"certificate": certificate, "metrics": Metrics(), "rules": SimpleNamespace(generation="3f2a")}
        | others
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


@pytest.mark.parametrize(
    ("shadow", "reported"),
    [
        (None, set()),
        (SimpleNamespace(error=""), {("shadow", True)}),
        (SimpleNamespace(error="invalid"), {("shadow", False)}),
    ],
    ids=["no shadow policy file", "a valid one", "an invalid one"],
)
def test_the_start_is_reported(shadow: Any, reported: set[tuple[str, bool]]) -> None:
    process = shared(Certificate(), shadow=shadow)
    process.report_start()
    assert set(process.metrics.values) == reported | {  # type: ignore[attr-defined] # as above
        ("version", __version__),
        ("3f2a", True),
        ("expires", UNTIL),
        ("certificate", True),
    }


@pytest.mark.parametrize(("accepted", "may_load"), [(b"0123456789abcdef", True), (b"0123456789abcdeX", False)])
def test_a_set_of_policies_may_be_loaded_after_its_trial(accepted: bytes, may_load: bool) -> None:  # noqa: FBT001 -- a table's column
    process = shared(Certificate(), guarding=SimpleNamespace(guard=SimpleNamespace(accepted=accepted)))
    # The guard keeps the first 16 bytes of a name.
    assert process.may_load(SimpleNamespace(own=b"0123456789abcdef and more")) is may_load  # type: ignore[arg-type] # what is used of it


class Files:
    """The policy file and the policies that it names, or an error."""

    def __init__(self, data: bytes | None, *policies: bytes, error: Exception | None = None) -> None:
        self._content = SimpleNamespace(data=data, sources=[SimpleNamespace(data=each) for each in policies])
        self._error = error

    def read(self) -> Any:
        if self._error:
            raise self._error
        return self._content


INVALID = Files(None, error=PolicyFileError("invalid"))


@pytest.mark.parametrize(
    ("files", "shadow", "texts"),
    [
        (Files(b"rules", b"one", b"two"), None, ("rules", "one", "two")),
        (Files(None), None, ("",)),
        (Files(b"caf\xe9 rules"), None, ("caf\ufffd rules",)),
        (Files(b"rules"), Files(b"shadow"), ("rules", "shadow")),
        (INVALID, Files(b"shadow"), ("shadow",)),
        (Files(b"rules"), Files(None, error=OSError()), ("rules",)),
    ],
    ids=["policies", "no file", "not UTF-8", "a shadow policy file", "invalid", "unreadable"],
)
def test_the_texts_of_all_policies_are_read(files: Files, shadow: Files | None, texts: tuple[str, ...]) -> None:
    process = shared(Certificate(), files=files, shadow=SimpleNamespace(files=shadow) if shadow else None)
    assert process.policy_texts() == texts


def test_the_time_has_a_time_zone() -> None:
    assert now().tzinfo is dt.UTC
