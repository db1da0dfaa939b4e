"""Test that lost, invalid and changed state is restored, while clients keep trusting the replicas."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pytest
from keeper_fleet import PERIODS, Fleet, started_fleet
from memory_cluster import START, MemoryRegistration, MemorySecret, forbidding, unreachable

from gpugate.certs import authorities
from gpugate.certs.keeper import Cluster, Keeper
from gpugate.certs.leaf import UNTRUSTED
from gpugate.certs.pki import KeyPair, certificate_authority, expiry, fingerprint, split
from gpugate.certs.protocols import ConflictError

Change: TypeAlias = Callable[[Fleet], None]
VALIDATING = "ValidatingWebhookConfiguration"
MUTATING = "MutatingWebhookConfiguration"


def foreign(name: str = "foreign") -> KeyPair:
    return certificate_authority(name, now=START, lifetime=dt.timedelta(days=900))


def set_data(key: str, content: bytes) -> Change:
    def change(fleet: Fleet) -> None:
        assert fleet.cluster.secret
        fleet.cluster.store({**fleet.cluster.secret.data, key: content}, {})

    return change


def delete_secret(fleet: Fleet) -> None:
    fleet.cluster.secret = None


def empty_secret(fleet: Fleet) -> None:
    fleet.cluster.store({}, {})


SECRETS: dict[str, Change] = {
    "deleted": delete_secret,
    "emptied": empty_secret,
    "without the active certificate": set_data("active.crt", b""),
    "with a truncated certificate": set_data("active.crt", foreign().certificate[:300]),
    "with another's key": set_data("active.key", foreign().key),
    "with an invalid active certificate": set_data("active.crt", b"-----BEGIN CERTIFICATE-----\nAAAA\n"),
    "with a state that is invalid JSON": set_data("state.json", b"{"),
    "with a state of a newer format": set_data("state.json", b'{"format": 2}'),
    "with a time without a time zone": set_data("state.json", b'{"format": 1, "promotedAt": "2026-03-01T00:00:00"}'),
    "with a megabyte of junk": set_data("active.key", b"x" * 2**20),
}


def test_an_installation_starts_with_an_empty_secret() -> None:
    fleet = Fleet()
    fleet.cluster.store({}, {})
    fleet.step(1)
    assert fleet.keepers[1].state.troubles == ()
    fleet.converge()
    assert len(fleet.served()) == len(fleet.keepers)


@pytest.mark.parametrize("change", SECRETS.values(), ids=SECRETS)
def test_a_secret_is_restored_from_memory(change: Change) -> None:
    fleet = started_fleet()
    served = fleet.signed_by()
    change(fleet)
    fleet.check()
    fleet.converge()
    assert fleet.cluster.secret
    restored = authorities.decode(fleet.cluster.secret.data)
    assert {fingerprint(restored.active.certificate)} == served == fleet.signed_by()
    fleet.check()


@pytest.mark.parametrize("change", SECRETS.values(), ids=SECRETS)
def test_trusted_authorities_remain_after_secret_and_memory_are_lost(change: Change) -> None:
    fleet = started_fleet()
    before = fleet.served()[1:]
    change(fleet)
    fleet.restart(0)
    fleet.step(0)
    assert fleet.cluster.secret
    # The other replicas keep their certificates until their next step.
    trusted = {fingerprint(pem) for bundle in fleet.cluster.bundles_known(fleet.cluster.time) for pem in split(bundle)}
    assert {keeper.state.leaf.authority for keeper in fleet.keepers[1:] if keeper.state.leaf} <= trusted
    assert fleet.served()[1:] == before
    fleet.converge()
    fleet.cluster.wait(minutes=10)
    fleet.check()


def test_an_unusable_next_authority_is_replaced() -> None:
    fleet = started_fleet()
    set_data("next.key", b"junk")(fleet)
    fleet.converge()
    fleet.check()
    assert fleet.cluster.secret
    assert authorities.decode(fleet.cluster.secret.data).next is not None


@dataclass(frozen=True)
class Tampering:
    kind: str
    bundle: bytes


TAMPERINGS = {
    "wiped": Tampering(VALIDATING, b""),
    "garbage": Tampering(VALIDATING, b"no PEM at all"),
    "foreign": Tampering(MUTATING, foreign().certificate),
    "foreign, with the name prefix of gpugate": Tampering(
        VALIDATING, foreign("gpugate-ca-20260301-00000000").certificate
    ),
}


@pytest.mark.parametrize("tampering", TAMPERINGS.values(), ids=TAMPERINGS)
def test_a_changed_bundle_is_restored(tampering: Tampering) -> None:
    fleet = started_fleet()
    good = fleet.cluster.live[tampering.kind]
    entry = next(iter(good))
    fleet.cluster.set_bundles(tampering.kind, {**good, entry: tampering.bundle})
    fleet.step(0)
    assert fleet.cluster.live[tampering.kind] == good


def test_foreign_authorities_are_not_adopted_when_the_secret_is_lost() -> None:
    fleet = started_fleet()
    tampering = TAMPERINGS["foreign, with the name prefix of gpugate"]
    good = fleet.cluster.live[tampering.kind]
    entry = next(iter(good))
    fleet.cluster.set_bundles(tampering.kind, {**good, entry: good[entry] + tampering.bundle})
    delete_secret(fleet)
    fleet.restart(0)
    fleet.step(0)
    assert all(tampering.bundle not in bundle for bundle in fleet.cluster.bundles_known(fleet.cluster.time))


def test_a_rotation_waits_while_both_previous_authorities_are_needed() -> None:
    fleet = started_fleet()
    fleet.cut_off(2, hours=5)
    signed = []
    for number in range(24):
        fleet.cluster.annotate("gpugate.dev/rotate", str(number))
        fleet.cluster.wait(minutes=11)
        fleet.converge()
        fleet.check()
        signed.append(fleet.keepers[0].state.leaf)
    assert len({leaf.authority for leaf in signed if leaf}) == 2


def test_a_recreated_configuration_gets_the_bundle() -> None:
    fleet = started_fleet()
    good = fleet.cluster.live[MUTATING]
    fleet.cluster.unregister(MUTATING)
    fleet.converge()
    fleet.cluster.set_bundles(MUTATING, dict.fromkeys(good, b""))
    fleet.step(0)
    assert fleet.cluster.live[MUTATING] == good


def test_an_authority_that_was_unpublished_propagates_again() -> None:
    fleet = started_fleet()
    good = fleet.cluster.live[VALIDATING]
    fleet.cluster.set_bundles(VALIDATING, dict.fromkeys(good, b""))
    fleet.cluster.wait(hours=30)
    fleet.converge()
    served = fleet.signed_by()
    fleet.cluster.wait(minutes=9)
    fleet.converge()
    assert fleet.signed_by() == served
    fleet.cluster.wait(minutes=1)
    fleet.converge()
    assert fleet.signed_by() != served


FORBIDDEN = {
    "nothing can be read": ("read",),
    "the Secret cannot be written": ("secret",),
    "the configurations cannot be written": ("publish",),
    "nothing can be written": ("secret", "publish"),
}


@pytest.mark.parametrize("calls", FORBIDDEN.values(), ids=FORBIDDEN)
def test_without_permissions_replicas_continue_and_report_the_missing_one(calls: tuple[str, ...]) -> None:
    fleet = started_fleet()
    fleet.cluster.wait(hours=31)
    fleet.cluster.fail = forbidding(*calls)
    for number in range(3):
        fleet.step(number)
    fleet.check()
    assert any("gpugate may not" in text for text in fleet.keepers[0].state.troubles)


def test_a_bundle_is_restored_while_the_secret_is_not_writable() -> None:
    fleet = started_fleet()
    good = fleet.cluster.live[VALIDATING]
    fleet.cluster.set_bundles(VALIDATING, dict.fromkeys(good, b""))
    fleet.cluster.fail = forbidding("secret")
    fleet.step(0)
    assert fleet.cluster.live[VALIDATING] == good


def test_a_due_certificate_is_renewed_without_a_call() -> None:
    fleet = started_fleet()
    before = fleet.served()[0]
    fleet.cluster.wait(hours=5)
    calls: list[str] = []
    fleet.cluster.fail = calls.append
    fleet.keepers[0].renew()
    assert (fleet.served()[0] != before, calls) == (True, [])
    fleet.check()


def test_a_certificate_that_is_not_due_is_kept() -> None:
    fleet = started_fleet()
    before = fleet.served()
    for keeper in fleet.keepers:
        keeper.renew()
    assert fleet.served() == before


def test_certificates_are_renewed_for_days_without_an_api_server() -> None:
    fleet = started_fleet()
    fleet.cluster.fail = unreachable
    for _ in range(24):
        fleet.cluster.wait(hours=1)
        for number in range(3):
            fleet.step(number)
        fleet.check()
    # A certificate lasts six hours, so all were renewed.
    assert all(expiry(certificate) > fleet.cluster.time for certificate in fleet.served())


@pytest.mark.parametrize("months", [4, 14])
def test_a_cluster_recovers_after_months_of_downtime(months: int) -> None:
    fleet = started_fleet()
    fleet.cluster.wait(days=30 * months)
    fleet.converge()
    fleet.cluster.wait(minutes=10)
    fleet.converge()
    fleet.check()


def test_two_leaders_create_one_set_of_authorities() -> None:
    fleet = Fleet()
    for lead in fleet.leads:
        lead.is_leader = True
    fleet.converge()
    assert len(fleet.signed_by()) == 1
    fleet.check()


def test_a_follower_writes_nothing() -> None:
    fleet = Fleet()
    fleet.leads[0].is_leader = False
    fleet.converge()
    assert fleet.cluster.secret is None
    assert fleet.served() == []
    assert fleet.keepers[0].state.waiting != ""


def test_a_trusted_certificate_is_kept_until_the_new_authority_is_trusted() -> None:
    fleet = started_fleet()
    served = fleet.signed_by()
    other = Fleet()
    other.converge()
    assert other.cluster.secret
    fleet.cluster.store(other.cluster.secret.data, {})
    fleet.step(1)
    assert fleet.keepers[1].state.waiting == UNTRUSTED
    assert fleet.signed_by() == served


def test_a_requested_rotation_happens_once_and_at_once() -> None:
    fleet = started_fleet()
    served = fleet.signed_by()
    fleet.cluster.annotate("gpugate.dev/rotate", "now")
    fleet.converge()
    assert fleet.signed_by().isdisjoint(served)
    fleet.check()
    again = fleet.signed_by()
    fleet.cluster.wait(minutes=30)
    fleet.converge()
    assert fleet.signed_by() == again, "one request causes one rotation"


def test_a_secret_is_not_restored_after_an_uninstall() -> None:
    fleet = started_fleet()
    fleet.cluster.unregister(MUTATING)
    fleet.cluster.unregister(VALIDATING)
    delete_secret(fleet)
    fleet.converge()
    assert fleet.cluster.secret is None


@pytest.mark.parametrize("rotations", [0, 1, 2])
def test_distrust_replaces_every_authority(rotations: int) -> None:
    fleet = started_fleet()
    for number in range(rotations):
        fleet.cluster.annotate("gpugate.dev/rotate", str(number))
        fleet.converge()
        fleet.cluster.wait(minutes=10)
    leaked = {fingerprint(pem) for pem in split(fleet.cluster.live[VALIDATING]["pods.validate.gpugate.dev"])}
    assert len(leaked) == rotations + 2
    fleet.cluster.annotate("gpugate.dev/distrust", "2026-03-01")
    for _ in range(4):
        fleet.converge()
        fleet.check()
        fleet.cluster.wait(minutes=10)
    fleet.converge()
    fleet.check()
    trusted = {fingerprint(pem) for pem in split(fleet.cluster.live[VALIDATING]["pods.validate.gpugate.dev"])}
    assert leaked.isdisjoint(trusted)


def test_keys_are_not_in_any_repr() -> None:
    fleet = started_fleet()
    assert fleet.cluster.secret
    shown = repr(fleet.keepers[0].state) + repr(fleet.cluster.secret)
    assert "PRIVATE KEY" not in shown


def test_a_conflict_is_retried_in_the_same_step() -> None:
    fleet = Fleet()
    conflicts_left = [2]

    def fail(call: str) -> None:
        if call != "read" and conflicts_left[0]:
            conflicts_left[0] -= 1
            raise ConflictError(call)

    fleet.cluster.fail = fail
    fleet.step(0)
    assert (conflicts_left, fleet.keepers[0].state.troubles) == ([0], ())
    assert len(fleet.served()) == 1


def test_invalid_names_are_reported() -> None:
    fleet = started_fleet()
    parts = Cluster(
        MemorySecret(fleet.cluster, fleet.lines[0]), MemoryRegistration(fleet.cluster, fleet.lines[0]), fleet.leads[0]
    )
    state = Keeper(parts, ["two words"], PERIODS, fleet.cluster.now, jitter=lambda: 0.0).step()
    assert state.leaf is None
    assert state.troubles == (
        "cannot create a serving certificate: 'two words' is neither an IP address nor a DNS name",
    )


def test_a_step_reports_its_writes_and_the_next_due_time() -> None:
    fleet = Fleet()
    state = fleet.keepers[0].step()
    assert state.done == (
        "created the active CA: the Secret contained no usable CA",
        "published the CA bundle in the MutatingWebhookConfiguration (CAs: 1)",
        "published the CA bundle in the ValidatingWebhookConfiguration (CAs: 1)",
        "created the next CA",
        "published the CA bundle in the MutatingWebhookConfiguration (CAs: 2)",
        "published the CA bundle in the ValidatingWebhookConfiguration (CAs: 2)",
        "the next CA is published",
    )
    assert state.leaf is not None
    assert (state.due, state.waiting) == (state.leaf.renew_at, "")
    again = fleet.keepers[0].step()
    assert (again.done, again.troubles, again.due) == ((), (), state.due)
    fleet.leads[0].is_leader = False
    assert fleet.keepers[0].step().due == state.leaf.renew_at


def test_a_renewal_resets_the_report_of_the_last_step() -> None:
    fleet = Fleet()
    keeper = fleet.keepers[0]
    keeper.step()
    done = keeper.state.done
    fleet.cluster.fail = unreachable
    troubled = keeper.step()
    assert (bool(done), troubled.done, troubled.troubles) == (True, (), ("the API server cannot be reached",))
    fleet.cluster.wait(hours=5)
    renewed = keeper.renew()
    assert renewed is keeper.state
    assert renewed.leaf is not None
    assert (renewed.troubles, renewed.done, renewed.due) == ((), (), renewed.leaf.renew_at)
    fleet.cluster.fail = lambda _: None
    assert keeper.step().troubles == ()


def test_a_step_and_a_renewal_report_only_what_they_did() -> None:
    fleet = Fleet()
    keeper = fleet.keepers[0]
    assert (keeper.step().done != (), keeper.renew().done) == (True, ())
    fleet.cluster.fail = unreachable
    assert keeper.step().troubles == ("the API server cannot be reached",)
    fleet.cluster.fail = lambda _: None
    assert keeper.step().troubles == ()


def test_nothing_is_renewed_without_an_authority() -> None:
    fleet = Fleet()
    renewed = fleet.keepers[1].renew()
    assert (renewed.leaf, renewed.due, renewed.troubles) == (None, None, ())
    assert renewed.waiting.startswith("the Secret of the certificate authorities does not exist yet")


def test_a_step_without_changes_reads_once() -> None:
    fleet = started_fleet()
    calls: list[str] = []
    fleet.cluster.fail = calls.append
    fleet.step(0)
    assert calls == ["read", "read"]


def test_a_forbidden_write_is_tried_once_per_step() -> None:
    fleet = Fleet()
    fleet.cluster.fail = forbidding("secret")
    assert fleet.keepers[0].step().troubles == ("gpugate may not secret",)


def test_a_corrupt_secret_is_reported() -> None:
    fleet = started_fleet()
    set_data("state.json", b"{")(fleet)
    troubles = fleet.keepers[1].step().troubles
    assert troubles == ("the Secret of the certificate authorities is unusable: state.json is not valid JSON",)


def test_a_pending_rotation_determines_the_next_due_time() -> None:
    fleet = Fleet()
    fleet.step(0)
    fleet.cluster.annotate("gpugate.dev/rotate", "1")
    assert fleet.keepers[0].step().due == START + PERIODS.propagation


def test_a_step_determines_the_next_due_time_anew() -> None:
    fleet = Fleet()
    fleet.step(0)
    fleet.cluster.annotate("gpugate.dev/rotate", "1")
    rotation = fleet.keepers[0].step().due
    fleet.cluster.wait(minutes=10)
    state = fleet.keepers[0].step()
    assert state.leaf is not None
    assert (rotation, state.due) == (fleet.cluster.time, state.leaf.renew_at)


def test_a_replica_that_loses_leadership_stops_publishing() -> None:
    fleet = Fleet()

    def fail(call: str) -> None:
        if call == "publish":
            fleet.leads[0].is_leader = False

    fleet.cluster.fail = fail
    fleet.step(0)
    assert [kind for kind, entries in fleet.cluster.live.items() if any(entries.values())] == [MUTATING]
