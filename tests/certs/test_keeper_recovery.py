"""What was lost, broken or tampered with is mended, and nobody is refused meanwhile who need not be."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pytest
from keeper_fleet import PERIODS, Fleet, begun
from memory_cluster import START, MemoryRegistration, MemorySecret, forbidding, unreachable

from gpugate.certs import authorities
from gpugate.certs.keeper import Cluster, Keeper
from gpugate.certs.leaf import UNTRUSTED
from gpugate.certs.pki import KeyPair, certificate_authority, expiry, fingerprint, split
from gpugate.certs.protocols import ConflictError

Breaking: TypeAlias = Callable[[Fleet], None]
VALIDATING = "ValidatingWebhookConfiguration"
MUTATING = "MutatingWebhookConfiguration"


def foreign(name: str = "somebody-else") -> KeyPair:
    return certificate_authority(name, now=START, lifetime=dt.timedelta(days=900))


def set_data(key: str, content: bytes) -> Breaking:
    def breaking(fleet: Fleet) -> None:
        assert fleet.cluster.secret
        fleet.cluster.store({**fleet.cluster.secret.data, key: content}, {})

    return breaking


def delete_secret(fleet: Fleet) -> None:
    fleet.cluster.secret = None


def empty_secret(fleet: Fleet) -> None:
    fleet.cluster.store({}, {})


SECRETS: dict[str, Breaking] = {
    "deleted": delete_secret,
    "emptied": empty_secret,
    "without the active certificate": set_data("active.crt", b""),
    "with a cut off certificate": set_data("active.crt", foreign().certificate[:300]),
    "with another's key": set_data("active.key", foreign().key),
    "with an active certificate that is no authority": set_data("active.crt", b"-----BEGIN CERTIFICATE-----\nAAAA\n"),
    "with a state that is no JSON": set_data("state.json", b"{"),
    "with a state of a newer format": set_data("state.json", b'{"format": 2}'),
    "with a time without a zone": set_data("state.json", b'{"format": 1, "promotedAt": "2026-03-01T00:00:00"}'),
    "with a megabyte of junk": set_data("active.key", b"x" * 2**20),
}


def test_an_installation_begins_with_an_empty_secret() -> None:
    fleet = Fleet()
    fleet.cluster.store({}, {})
    fleet.step(1)
    assert fleet.keepers[1].state.troubles == ()
    fleet.converge()
    assert len(fleet.served()) == len(fleet.keepers)


@pytest.mark.parametrize("breaking", SECRETS.values(), ids=SECRETS)
def test_a_secret_is_restored_from_memory(breaking: Breaking) -> None:
    fleet = begun()
    served = fleet.signed_by()
    breaking(fleet)
    fleet.check()
    fleet.converge()
    assert fleet.cluster.secret
    restored = authorities.decode(fleet.cluster.secret.data)
    assert {fingerprint(restored.active.certificate)} == served == fleet.signed_by()
    fleet.check()


@pytest.mark.parametrize("breaking", SECRETS.values(), ids=SECRETS)
def test_where_nobody_remembers_what_clients_trust_stays_trusted(breaking: Breaking) -> None:
    fleet = begun()
    before = fleet.served()[1:]
    breaking(fleet)
    fleet.restart(0)
    fleet.step(0)
    assert fleet.cluster.secret
    # The others serve with what they have until they look.
    trusted = {fingerprint(pem) for bundle in fleet.cluster.bundles_known(fleet.cluster.time) for pem in split(bundle)}
    assert {keeper.state.leaf.authority for keeper in fleet.keepers[1:] if keeper.state.leaf} <= trusted
    assert fleet.served()[1:] == before
    fleet.converge()
    fleet.cluster.wait(minutes=10)
    fleet.check()


def test_a_next_authority_that_cannot_be_used_is_replaced() -> None:
    fleet = begun()
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
    "somebody else's": Tampering(MUTATING, foreign().certificate),
    "somebody else's under our name": Tampering(VALIDATING, foreign("gpugate-ca-20260301-00000000").certificate),
}


@pytest.mark.parametrize("tampering", TAMPERINGS.values(), ids=TAMPERINGS)
def test_a_bundle_is_put_back_without_what_others_put_there(tampering: Tampering) -> None:
    fleet = begun()
    good = fleet.cluster.live[tampering.kind]
    one = next(iter(good))
    fleet.cluster.set_bundles(tampering.kind, {**good, one: tampering.bundle})
    fleet.step(0)
    assert fleet.cluster.live[tampering.kind] == good


def test_what_somebody_put_there_is_not_trusted_because_the_secret_was_lost() -> None:
    fleet = begun()
    foreign_one = TAMPERINGS["somebody else's under our name"]
    good = fleet.cluster.live[foreign_one.kind]
    one = next(iter(good))
    fleet.cluster.set_bundles(foreign_one.kind, {**good, one: good[one] + foreign_one.bundle})
    delete_secret(fleet)
    fleet.restart(0)
    fleet.step(0)
    assert all(foreign_one.bundle not in bundle for bundle in fleet.cluster.bundles_known(fleet.cluster.time))


def test_rotations_in_a_row_wait_until_nobody_needs_the_oldest() -> None:
    fleet = begun()
    fleet.cut_off(2, hours=5)
    signed = []
    for number in range(24):
        fleet.cluster.annotate("gpugate.dev/rotate", str(number))
        fleet.cluster.wait(minutes=11)
        fleet.converge()
        fleet.check()
        signed.append(fleet.keepers[0].state.leaf)
    assert len({leaf.authority for leaf in signed if leaf}) == 2


def test_a_configuration_made_again_gets_its_bundle() -> None:
    fleet = begun()
    good = fleet.cluster.live[MUTATING]
    fleet.cluster.unregister(MUTATING)
    fleet.converge()
    fleet.cluster.set_bundles(MUTATING, dict.fromkeys(good, b""))
    fleet.step(0)
    assert fleet.cluster.live[MUTATING] == good


def test_what_was_not_published_all_the_time_waits_once_more() -> None:
    fleet = begun()
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


@pytest.mark.parametrize("whats", FORBIDDEN.values(), ids=FORBIDDEN)
def test_without_rights_the_replicas_serve_on_and_say_what_is_missing(whats: tuple[str, ...]) -> None:
    fleet = begun()
    fleet.cluster.wait(hours=31)
    fleet.cluster.fail = forbidding(*whats)
    for number in range(3):
        fleet.step(number)
    fleet.check()
    assert any("gpugate may not" in text for text in fleet.keepers[0].state.troubles)


def test_a_bundle_is_put_back_also_where_the_secret_cannot_be_written() -> None:
    fleet = begun()
    good = fleet.cluster.live[VALIDATING]
    fleet.cluster.set_bundles(VALIDATING, dict.fromkeys(good, b""))
    fleet.cluster.fail = forbidding("secret")
    fleet.step(0)
    assert fleet.cluster.live[VALIDATING] == good


def test_a_certificate_that_is_due_is_renewed_before_anything_is_asked() -> None:
    fleet = begun()
    before = fleet.served()[0]
    fleet.cluster.wait(hours=5)
    asked: list[str] = []
    fleet.cluster.fail = asked.append
    fleet.keepers[0].renew()
    assert (fleet.served()[0] != before, asked) == (True, [])
    fleet.check()


def test_nothing_is_renewed_that_is_not_due() -> None:
    fleet = begun()
    before = fleet.served()
    for keeper in fleet.keepers:
        keeper.renew()
    assert fleet.served() == before


def test_certificates_are_renewed_for_days_without_an_api_server() -> None:
    fleet = begun()
    fleet.cluster.fail = unreachable
    for _ in range(24):
        fleet.cluster.wait(hours=1)
        for number in range(3):
            fleet.step(number)
        fleet.check()
    # A certificate lasts six hours, so by now it is another.
    assert all(expiry(certificate) > fleet.cluster.time for certificate in fleet.served())


@pytest.mark.parametrize("months", [4, 14])
def test_a_cluster_that_slept_begins_anew(months: int) -> None:
    fleet = begun()
    fleet.cluster.wait(days=30 * months)
    fleet.converge()
    fleet.cluster.wait(minutes=10)
    fleet.converge()
    fleet.check()


def test_of_two_that_lead_one_makes_the_authorities() -> None:
    fleet = Fleet()
    for lead in fleet.leads:
        lead.is_leader = True
    fleet.converge()
    assert len(fleet.signed_by()) == 1
    fleet.check()


def test_who_does_not_lead_writes_nothing() -> None:
    fleet = Fleet()
    fleet.leads[0].is_leader = False
    fleet.converge()
    assert fleet.cluster.secret is None
    assert fleet.served() == []
    assert fleet.keepers[0].state.waiting != ""


def test_a_new_authority_is_waited_for_by_who_has_a_trusted_certificate() -> None:
    fleet = begun()
    served = fleet.signed_by()
    other = Fleet()
    other.converge()
    assert other.cluster.secret
    fleet.cluster.store(other.cluster.secret.data, {})
    fleet.step(1)
    assert fleet.keepers[1].state.waiting == UNTRUSTED
    assert fleet.signed_by() == served


def test_a_rotation_that_was_asked_for_takes_no_longer_than_it_must() -> None:
    fleet = begun()
    served = fleet.signed_by()
    fleet.cluster.annotate("gpugate.dev/rotate", "now")
    fleet.converge()
    assert fleet.signed_by().isdisjoint(served)
    fleet.check()
    again = fleet.signed_by()
    fleet.cluster.wait(minutes=30)
    fleet.converge()
    assert fleet.signed_by() == again, "one request is one rotation"


def test_a_secret_is_not_restored_where_the_webhook_is_removed() -> None:
    fleet = begun()
    fleet.cluster.unregister(MUTATING)
    fleet.cluster.unregister(VALIDATING)
    delete_secret(fleet)
    fleet.converge()
    assert fleet.cluster.secret is None


@pytest.mark.parametrize("rotations", [0, 1, 2])
def test_where_a_key_leaked_every_authority_goes(rotations: int) -> None:
    fleet = begun()
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


def test_keys_are_never_shown() -> None:
    fleet = begun()
    assert fleet.cluster.secret
    shown = repr(fleet.keepers[0].state) + repr(fleet.cluster.secret)
    assert "PRIVATE KEY" not in shown


def test_what_somebody_else_wrote_meanwhile_is_looked_at_in_the_same_step() -> None:
    fleet = Fleet()
    left = [2]

    def fail(what: str) -> None:
        if what != "read" and left[0]:
            left[0] -= 1
            raise ConflictError(what)

    fleet.cluster.fail = fail
    fleet.step(0)
    assert (left, fleet.keepers[0].state.troubles) == ([0], ())
    assert len(fleet.served()) == 1


def test_names_that_no_certificate_can_have_are_said() -> None:
    fleet = begun()
    parts = Cluster(
        MemorySecret(fleet.cluster, fleet.lines[0]), MemoryRegistration(fleet.cluster, fleet.lines[0]), fleet.leads[0]
    )
    state = Keeper(parts, ["two words"], PERIODS, fleet.cluster.now, jitter=lambda: 0.0).step()
    assert state.leaf is None
    assert state.troubles == (
        "cannot create a serving certificate: 'two words' is neither an IP address nor a DNS name",
    )


def test_a_step_says_what_it_did_and_when_the_next_is_due() -> None:
    fleet = Fleet()
    state = fleet.keepers[0].step()
    assert state.done == (
        "created the active CA: the Secret contained no usable CA",
        "published 1 CAs in the MutatingWebhookConfiguration",
        "published 1 CAs in the ValidatingWebhookConfiguration",
        "created the next CA",
        "published 2 CAs in the MutatingWebhookConfiguration",
        "published 2 CAs in the ValidatingWebhookConfiguration",
        "the next CA is published",
    )
    assert state.leaf is not None
    assert (state.due, state.waiting) == (state.leaf.renew_at, "")
    again = fleet.keepers[0].step()
    assert (again.done, again.troubles, again.due) == ((), (), state.due)
    fleet.leads[0].is_leader = False
    assert fleet.keepers[0].step().due == state.leaf.renew_at


def test_a_renewal_says_nothing_of_the_step_before() -> None:
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


def test_before_there_is_an_authority_nothing_is_renewed() -> None:
    fleet = Fleet()
    renewed = fleet.keepers[1].renew()
    assert (renewed.leaf, renewed.due, renewed.troubles) == (None, None, ())
    assert renewed.waiting.startswith("the Secret of the certificate authorities does not exist yet")


def test_a_replica_at_rest_reads_once() -> None:
    fleet = begun()
    asked: list[str] = []
    fleet.cluster.fail = asked.append
    fleet.step(0)
    assert asked == ["read", "read"]


def test_a_write_that_is_forbidden_is_tried_once_in_a_step() -> None:
    fleet = Fleet()
    fleet.cluster.fail = forbidding("secret")
    assert fleet.keepers[0].step().troubles == ("gpugate may not secret",)


def test_what_is_wrong_with_the_secret_is_said() -> None:
    fleet = begun()
    set_data("state.json", b"{")(fleet)
    troubles = fleet.keepers[1].step().troubles
    assert troubles == ("the Secret of the certificate authorities is unusable: state.json is not valid JSON",)


def test_a_rotation_that_waits_is_due_before_the_certificate_is() -> None:
    fleet = Fleet()
    fleet.step(0)
    fleet.cluster.annotate("gpugate.dev/rotate", "1")
    assert fleet.keepers[0].step().due == START + PERIODS.propagation


def test_a_replica_that_loses_the_lead_publishes_no_further() -> None:
    fleet = Fleet()

    def fail(what: str) -> None:
        if what == "publish":
            fleet.leads[0].is_leader = False

    fleet.cluster.fail = fail
    fleet.step(0)
    assert [kind for kind, entries in fleet.cluster.live.items() if any(entries.values())] == [MUTATING]
