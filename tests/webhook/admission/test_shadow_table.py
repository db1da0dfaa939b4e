"""Which decisions of two policy files are a pair, and what the table keeps of many."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from api_server.library import FILES, ROOT
from example_laws import for_each_example
from hypothesis import given
from hypothesis import strategies as st
from library_examples import library_example, ruleset_of

from gpugate.policies.engine.config import PolicyConfig, PolicyEntry
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.engine.verdict import Finding, Outcome, Verdict
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Patch, Skip, Stance, Violation
from gpugate.policies.sdk.objects import POD, GroupVersionKind, Operation, Request
from gpugate.policies.sdk.policy import Policy, mutates, validates
from gpugate.webhook.admission.shadow_table import (
    MOST_OWNERS,
    Pair,
    Shadowed,
    ShadowTable,
    decided_by,
    decision_words,
    merged,
    pairs,
)
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

TODAY = dt.date(2026, 11, 21)
TIME = dt.datetime(2026, 11, 21, 10, tzinfo=dt.UTC)


@mutates(POD)
def _labels(pod: Field, _: AnyContext) -> Iterator[Patch]:
    if not pod["metadata", "labels", "seen"]:
        yield Patch("set", ("metadata", "labels", "seen"), "yes", "adds a label")


@validates(POD)
def _wants_label(pod: Field, _: AnyContext) -> Iterator[Violation]:
    if not pod["metadata", "labels", "seen"]:
        yield Violation((), "has no label", hint="add one")


@validates(POD)
def _cannot_tell(pod: Field, _: AnyContext) -> Iterator[Skip | Violation]:
    if pod["metadata", "labels", "known"]:
        yield Violation((), "is known")
    else:
        yield Skip("objects are missing")


CATALOG = (
    Policy("pods/labels", "", (_labels,)),
    Policy("pods/wants-label", "", (_wants_label,)),
    Policy("pods/cannot-tell", "", (_cannot_tell,)),
)
MUTATING = frozenset({"pods/labels"})


def ruleset(**modes: Any) -> Ruleset:
    entries = {f"pods/{name.replace('_', '-')}": PolicyEntry(mode=mode) for name, mode in modes.items()}
    others = {policy.id: PolicyEntry(mode="off") for policy in CATALOG if policy.id not in entries}
    return bind(CATALOG, PolicyConfig(policies=entries | others))


def request(name: str = "p", user: str = "alice", **labels: str) -> Request:
    pod = {"metadata": {"name": name, "namespace": "ml", "labels": labels}, "spec": {"containers": [{"name": "c"}]}}
    kind = GroupVersionKind("", "v1", "Pod")
    return Request(kind, Operation.CREATE, pod, name=name, namespace="ml", user=user)


def verdict(rules: Ruleset, req: Request, phase: Phase, facts: Any = None) -> Verdict:
    return evaluate(rules, req, facts or NoFacts(), today=TODAY, phase=phase, template_ceiling=Stance.WARN)


def compared(phase: Phase, current: Ruleset, candidate: Ruleset, req: Request) -> list[tuple[str, str, str]]:
    """Return what the server compares: the real verdict, and that of the candidate."""
    after = verdict(candidate, req, Phase.MUTATE if phase is Phase.MUTATE else Phase.BOTH)
    return [pair[:3] for pair in pairs(phase, verdict(current, req, phase), after, MUTATING)]


@pytest.mark.parametrize(
    ("phase", "current", "candidate", "expected"),
    [
        (Phase.MUTATE, {"labels": "warn"}, {"labels": "enforce"}, [("pods/labels", "warn", "mutate")]),
        (Phase.MUTATE, {"labels": "enforce"}, {"labels": "audit"}, [("pods/labels", "mutate", "record")]),
        (Phase.MUTATE, {"labels": "off"}, {"labels": "enforce"}, [("pods/labels", "allow", "mutate")]),
        # What happens to the object itself counts once, in its mutating review.
        (Phase.VALIDATE, {"labels": "warn"}, {"labels": "enforce"}, []),
        (Phase.MUTATE, {"wants_label": "warn"}, {"wants_label": "enforce"}, []),
        (Phase.VALIDATE, {"wants_label": "warn"}, {"wants_label": "enforce"}, [("pods/wants-label", "warn", "deny")]),
        (Phase.VALIDATE, {"wants_label": "enforce"}, {"wants_label": "off"}, [("pods/wants-label", "deny", "allow")]),
        # The candidate would have added the label before its check.
        (
            Phase.VALIDATE,
            {"labels": "audit", "wants_label": "warn"},
            {"labels": "enforce", "wants_label": "enforce"},
            [("pods/wants-label", "warn", "allow")],
        ),
        # A policy without its data says nothing about a difference.
        (Phase.VALIDATE, {"cannot_tell": "enforce"}, {"cannot_tell": "warn"}, []),
    ],
)
def test_pairs(
    phase: Phase, current: dict[str, str], candidate: dict[str, str], expected: list[tuple[str, str, str]]
) -> None:
    assert compared(phase, ruleset(**current), ruleset(**candidate), request()) == expected


@pytest.mark.parametrize(("value", "expected"), [("yes", [("malformed", "deny", "deny")]), (None, [])])
def test_a_field_of_the_wrong_type_is_a_pair_of_the_validating_review(value: str | None, expected: list[Any]) -> None:
    req = request()
    assert req.object is not None
    if value:
        req.object["spec"]["containers"] = value
    rules = ruleset(wants_label="off", labels="enforce")
    assert compared(Phase.VALIDATE, rules, rules, req) == expected
    assert compared(Phase.MUTATE, rules, ruleset(labels="enforce"), req) == (
        [] if value else [("pods/labels", "mutate", "mutate")]
    )


examples = for_each_example(FILES)


@examples
def test_the_policy_file_in_force_as_the_shadow_decides_alike(name: str) -> None:
    """The law of the shadow: whatever the request, the same policies give pairs of equal decisions."""
    example = library_example(ROOT / name)
    rules = ruleset_of(example.config)
    facts = RunFacts(example.context, complete=example.complete)
    mutating = frozenset(p.id for p in rules.catalog if all(handler.mutates for handler in p.handlers))
    mutated = verdict(rules, example.request, Phase.MUTATE, facts)
    stored = replace(example.request, object=mutated.object) if mutated.object else example.request
    for phase, req in ((Phase.MUTATE, example.request), (Phase.VALIDATE, stored)):
        current = verdict(rules, req, phase, facts)
        after = verdict(rules, req, Phase.MUTATE if phase is Phase.MUTATE else Phase.BOTH, facts)
        assert [pair for pair in pairs(phase, current, after, mutating) if pair.differs] == []


DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


@pytest.mark.parametrize(
    ("phase", "template_of", "would_patch", "decided"),
    [
        # A patch that is only a warning counts in the mutating review of the object itself.
        (Phase.MUTATE, None, True, {"pods/x": "warn"}),
        (Phase.MUTATE, DEPLOYMENT, True, {}),
        (Phase.VALIDATE, None, True, {}),
        (Phase.VALIDATE, DEPLOYMENT, True, {}),
        (Phase.VALIDATE, DEPLOYMENT, False, {"pods/x": "warn"}),
    ],
)
def test_what_a_mutation_would_change_counts_once(
    phase: Phase,
    template_of: GroupVersionKind | None,
    would_patch: bool,  # noqa: FBT001 -- a table's column
    decided: dict[str, str],
) -> None:
    finding = Finding("pods/x", (), "m", Stance.WARN, template_of=template_of, would_patch=would_patch)
    found = Verdict(request(), (Outcome("pods/x", Stance.WARN, (finding,)),))
    assert decision_words(decided_by(phase, found, frozenset())) == decided


def shadowed(table: ShadowTable, since: dt.datetime = TIME, generation: str = "new", **reviews: int) -> Shadowed:
    return Shadowed("1", "old", generation, "", since, since, reviews, table.owners(), table.left_out)


decisions = st.sampled_from(["deny", "mutate", "warn", "record", "allow"])
# All requests have the same message, because the request that is the sample differs with the order of the tables.
paired = st.builds(Pair, st.sampled_from(["pods/x", "pods/y"]), decisions, decisions, st.just("m"), st.just("h"))
additions = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["alice", "system:serviceaccount:kube-system:job-controller"]),
        st.lists(paired, min_size=1, max_size=2),
        st.sampled_from([Phase.MUTATE, Phase.VALIDATE]),
        st.integers(0, 100),
        st.integers(0, 2),
    ),
    max_size=20,
)


@given(additions)
def test_the_tables_of_several_processes_are_one_table(added: list[Any]) -> None:
    whole, parts = ShadowTable(), [ShadowTable() for _ in range(3)]
    for name, user, found, phase, second, process in added:
        for table in (whole, parts[process]):
            list(table.add(phase, request(name, user), found, TIME + dt.timedelta(seconds=second)))
    document = merged([shadowed(part, evaluated=1) for part in parts])
    assert document is not None
    assert document.owners == whole.owners()
    assert document.reviews == {"evaluated": 3}
    assert msgspec.json.decode(msgspec.json.encode(document), type=Shadowed) == document


def test_tables_of_other_policy_files_are_not_added() -> None:
    table = ShadowTable()
    list(table.add(Phase.VALIDATE, request(), [Pair("pods/x", "warn", "deny")], TIME))
    document = merged([shadowed(table), shadowed(table, generation="newer")])
    assert document is not None
    assert [pair.requests for owner in document.owners for pair in owner.pairs] == [1]


def test_an_owner_is_counted_by_policy_decisions_and_requester() -> None:
    table = ShadowTable()
    new = [
        list(table.add(Phase.VALIDATE, request("p", user), [Pair("pods/x", "warn", "deny", "m", "h")], TIME + later))
        for user, later in (("alice", dt.timedelta(1)), ("alice", dt.timedelta(0)), ("system:node:n", dt.timedelta(2)))
    ]
    (owner,) = table.owners()
    assert [len(each) for each in new] == [1, 0, 1]
    assert (owner.current, owner.candidate, owner.operations) == ("warn", "deny", ("CREATE",))
    assert [(pair.requester, pair.requests, pair.last - pair.first) for pair in owner.pairs] == [
        ("controller", 1, dt.timedelta(0)),
        ("person", 2, dt.timedelta(1)),
    ]
    assert (owner.pairs[0].sample.name, owner.pairs[0].sample.message, owner.pairs[0].sample.hint) == ("p", "m", "h")


def test_a_review_without_decisions_is_of_no_owner() -> None:
    table = ShadowTable()
    assert (list(table.add(Phase.VALIDATE, request(), [], TIME)), table.owners()) == ([], ())


def test_any_number_of_owners_takes_a_bounded_table() -> None:
    table = ShadowTable()
    long = "x" * 10_000
    for number in range(2 * MOST_OWNERS):
        differing = [Pair("pods/x", "warn", "deny", long, long)]
        list(table.add(Phase.VALIDATE, request(f"p{number}-{long}"), differing, TIME))
        list(table.add(Phase.VALIDATE, request(f"q{number}-{long}"), [Pair("pods/x", "warn", "warn", long)], TIME))
    assert len(table.owners()) == 2 * MOST_OWNERS
    assert table.left_out == MOST_OWNERS
    assert len(msgspec.json.encode(shadowed(table))) < 4_000 * 2 * MOST_OWNERS


class TestRoom:
    SAME = Pair("pods/x", "deny", "deny")
    NEW = Pair("pods/x", "warn", "deny")

    def add(self, table: ShadowTable, name: str, pair: Pair, reviews: int = 1) -> list[Pair]:
        return list(table.add(Phase.VALIDATE, request(name), [pair], TIME, reviews))

    def names(self, table: ShadowTable) -> list[str]:
        return [owner.object.name for owner in table.owners()]

    def test_the_latest_owners_are_kept_of_those_whose_decisions_stay_the_same(self) -> None:
        table = ShadowTable(2)
        for name in ("a", "b", "a", "c"):
            self.add(table, name, self.SAME)
        assert (self.names(table), table.left_out) == (["a", "c"], 0)

    def test_the_first_owners_are_kept_of_those_that_are_decided_differently(self) -> None:
        table = ShadowTable(2)
        logged = [len(self.add(table, name, self.NEW, 3)) for name in ("b", "a", "c", "a", "d")]
        assert (self.names(table), logged, table.left_out) == (["a", "b"], [1, 1, 0, 0, 0], 6)

    def test_an_owner_that_is_first_the_same_and_then_different_is_one(self) -> None:
        table = ShadowTable(1)
        for pair in (self.SAME, self.NEW, self.SAME):
            self.add(table, "a", pair)
        (owner,) = table.owners()
        assert [pair.requests for pair in owner.pairs] == [2, 1]

    def test_without_room_an_owner_keeps_what_was_counted_before(self) -> None:
        table = ShadowTable(1)
        self.add(table, "a", self.NEW)
        self.add(table, "b", self.SAME, 5)
        self.add(table, "b", self.NEW)
        assert (self.names(table), table.left_out) == (["a", "b"], 1)
        assert [pair.requests for pair in table.owners()[1].pairs] == [5]

    def test_owners_of_another_process_without_room_are_left_out(self) -> None:
        table, other = ShadowTable(1), ShadowTable(2)
        self.add(table, "b", self.NEW)
        self.add(other, "a", self.NEW, 2)
        list(other.add(Phase.VALIDATE, request("a", "system:node:n"), [self.NEW], TIME))
        self.add(other, "b", self.NEW)
        table.include(shadowed(other))
        (owner,) = table.owners()
        assert (owner.object.name, [pair.requests for pair in owner.pairs], table.left_out) == ("b", [2], 3)

    def test_the_pairs_of_an_owner_are_limited(self) -> None:
        table = ShadowTable()
        logged = [self.add(table, "a", Pair(f"pods/p{number:03}", "warn", "deny")) for number in range(70)]
        (owner,) = table.owners()
        assert ([len(each) for each in logged], len(owner.pairs)) == ([1] * 64 + [0] * 6, 64)
        # Known pairs are still counted.
        self.add(table, "a", Pair("pods/p000", "warn", "deny"))
        assert table.owners()[0].pairs[0].requests == 2


def test_an_owner_that_is_denied_anyway_is_not_newly_denied() -> None:
    table = ShadowTable()
    list(table.add(Phase.VALIDATE, request(), [Pair("pods/x", "deny", "deny")], TIME))
    list(table.add(Phase.VALIDATE, request(), [Pair("pods/y", "warn", "deny")], TIME))
    (owner,) = table.owners()
    assert (owner.current, owner.candidate) == ("deny", "deny")


def test_no_content_of_an_object_is_kept() -> None:
    req = request(private="do-not-tell-this")
    assert req.object is not None
    req.object["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": "do-not-tell-this"}]
    table = ShadowTable()
    found = pairs(
        Phase.VALIDATE,
        verdict(ruleset(wants_label="warn"), req, Phase.VALIDATE),
        verdict(ruleset(wants_label="enforce"), req, Phase.BOTH),
        MUTATING,
    )
    assert [pair.candidate for pair in table.add(Phase.VALIDATE, req, found, TIME)] == ["deny"]
    assert b"do-not-tell-this" not in msgspec.json.encode(shadowed(table))


def test_a_counted_table_does_not_change() -> None:
    table = ShadowTable()
    list(table.add(Phase.VALIDATE, request(), [Pair("pods/x", "warn", "deny", "m")], TIME))
    document = shadowed(table)
    (owner,) = document.owners
    for part in (document, owner, owner.requests[0], owner.pairs[0], owner.pairs[0].sample):
        with pytest.raises(AttributeError):
            setattr(part, part.__struct_fields__[0], None)
