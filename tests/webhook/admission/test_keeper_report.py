from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pytest
from admission.logged import FakeLog, Scraped

from gpugate.certs.authorities import Authorities, Periods, create_authorities, create_authority
from gpugate.certs.keeper import State
from gpugate.certs.leaf import Leaf
from gpugate.certs.pki import expiry, fingerprint, server_certificate
from gpugate.certs.protocols import LiveConfiguration
from gpugate.webhook.admission.keeper import KeeperReport

if TYPE_CHECKING:
    from gpugate.webhook.admission.log import Log

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
PERIODS = Periods()
AUTHORITIES = replace(create_authorities(PERIODS, NOW), next=create_authority(PERIODS, NOW))
MUTATING, VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
BUNDLE_EXPIRY = "gpugate_webhook_ca_bundle_expiry_timestamp_seconds"


def signed(authorities: Authorities) -> Leaf:
    pair = server_certificate(authorities.active, ["gpugate.gpugate.svc"], now=NOW, lifetime=PERIODS.leaf)
    return Leaf(pair, fingerprint(authorities.active.certificate), NOW + PERIODS.leaf * 2 / 3)


LEAF = signed(AUTHORITIES)
GOOD = State(
    LEAF, AUTHORITIES, (LiveConfiguration(VALIDATING, {"a": AUTHORITIES.bundle, "b": AUTHORITIES.bundle}, "1"),), ""
)


@dataclass
class ReportCase:
    """A report with its log and metrics; `seconds` is its clock."""

    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.log, self.metrics = FakeLog(), Scraped()
        self.report = KeeperReport(self.metrics, cast("Log", self.log), lambda: self.seconds)

    def update(self, state: State, *, leads: bool = True, skew: dt.timedelta | None = None) -> ReportCase:
        self.report.update(state, leads=leads, skew=skew)
        return self


@pytest.fixture
def case() -> ReportCase:
    return ReportCase()


@pytest.mark.parametrize(
    ("state", "good"),
    [
        pytest.param(GOOD, 1, id="kept"),
        pytest.param(replace(GOOD, waiting="not trusted"), 0, id="waiting"),
        pytest.param(replace(GOOD, troubles=("refused",)), 0, id="in-trouble"),
        pytest.param(State(), 0, id="nothing-yet"),
    ],
)
def test_whether_certificates_are_kept(case: ReportCase, state: State, good: int) -> None:
    assert case.update(state).metrics.value("gpugate_certificate_management_healthy") == good


@pytest.mark.parametrize("leads", [True, False])
def test_who_leads(case: ReportCase, leads: bool) -> None:  # noqa: FBT001 -- a table's column
    assert case.update(GOOD, leads=leads).metrics.value("gpugate_certificate_leader") == leads


def test_when_the_authority_ends(case: ReportCase) -> None:
    found = case.update(GOOD).metrics.value("gpugate_certificate_authority_expiry_timestamp_seconds")
    assert found == expiry(AUTHORITIES.active.certificate).timestamp()


def test_an_unknown_authority_is_not_reported(case: ReportCase) -> None:
    assert case.update(State()).metrics.value("gpugate_certificate_authority_expiry_timestamp_seconds") is None


TRUSTED = expiry(AUTHORITIES.active.certificate).timestamp()
BUNDLES = {
    "every entry vouches": ({"a": AUTHORITIES.bundle, "b": AUTHORITIES.bundle}, TRUSTED),
    "one entry is empty": ({"a": AUTHORITIES.bundle, "b": b""}, 0),
    "one entry is garbage": ({"a": AUTHORITIES.bundle, "b": b"junk"}, 0),
    "one entry is somebody else's": ({"a": create_authority(PERIODS, NOW).certificate}, 0),
    "there is no entry": ({}, None),
}


@pytest.mark.parametrize(("bundles", "until"), BUNDLES.values(), ids=BUNDLES)
def test_until_when_bundles_vouch(case: ReportCase, bundles: dict[str, bytes], until: float | None) -> None:
    state = replace(GOOD, live=(LiveConfiguration(MUTATING, bundles, "1"),))
    assert case.update(state).metrics.value(BUNDLE_EXPIRY, configuration=MUTATING) == until


@pytest.mark.parametrize(
    ("seconds", "says"),
    [(0, []), (60, []), (-60, []), (61, ["+61 s from this Pod's"]), (-86_400, ["-86400 s from this Pod's"])],
)
def test_clocks_that_differ(case: ReportCase, seconds: int, says: list[str]) -> None:
    case.update(GOOD, skew=seconds * SECOND)
    assert case.metrics.value("gpugate_clock_skew_seconds") == seconds
    assert [text in reason for text, reason in zip(says, case.log.reasons(), strict=True)] == [True] * len(says)


def test_a_problem_is_logged_at_once_and_then_once_a_minute(case: ReportCase) -> None:
    written = []
    for second in range(0, 180, 5):
        case.seconds = second
        before = len(case.log.reasons())
        case.update(replace(GOOD, troubles=("refused",)))
        written += [second] * (len(case.log.reasons()) - before)
    assert written == [0, 60, 120]


def test_an_error_of_the_keeper_is_reported(case: ReportCase) -> None:
    case.update(GOOD)
    case.report.broke("internal error: KeyError", leads=True)
    assert case.metrics.value("gpugate_certificate_management_healthy") == 0
    assert case.log.lines[-1] == (
        "error",
        "certificates are not kept as they should be",
        {"reason": "internal error: KeyError"},
    )


@pytest.mark.parametrize("leads", [True, False])
def test_an_error_of_the_keeper_keeps_the_leader(case: ReportCase, leads: bool) -> None:  # noqa: FBT001 -- a table's column
    case.report.broke("internal error: KeyError", leads=leads)
    assert case.metrics.value("gpugate_certificate_leader") == leads


def test_problems_are_logged_independently(case: ReportCase) -> None:
    case.update(replace(GOOD, troubles=("one",)))
    case.update(replace(GOOD, troubles=("one", "two")))
    assert case.log.reasons() == ["one", "two"]


def test_each_reason_for_an_untrusted_certificate_is_a_problem(case: ReportCase) -> None:
    case.update(replace(GOOD, troubles=("one",), waiting="two"), skew=61 * SECOND)
    assert [reason.split(" ")[0] for reason in case.log.reasons()] == ["one", "two", "the"]


def test_a_certificate_is_logged_once(case: ReportCase) -> None:
    for _ in range(3):
        case.update(GOOD)
    fields = {"authority": LEAF.authority[:16], "expires": "2026-11-22T12:00:00+00:00"}
    assert case.log.lines == [("info", "certificate made", fields)]


def test_completed_actions_are_logged(case: ReportCase) -> None:
    case.update(replace(GOOD, done=("created the next CA",)))
    assert ("info", "certificate authorities", {"did": "created the next CA"}) in case.log.lines


def test_nothing_of_a_key_or_a_certificate_is_written(case: ReportCase) -> None:
    case.update(replace(GOOD, done=("d",), troubles=("t",), waiting="w"), skew=100 * SECOND)
    written = str(case.log.lines)
    content = (LEAF.pair, AUTHORITIES.active)
    lines = [line.decode() for pair in content for pem in (pair.certificate, pair.key) for line in pem.splitlines()]
    assert [line for line in lines if line in written] == []
