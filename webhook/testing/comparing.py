"""Compare verdicts with expectations, and describe the differences."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec

from gpugate.policies.engine.config import near_misses
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import Operation, Request
from gpugate.webhook.manifests.case_format import Expect, Where
from gpugate.webhook.manifests.edit import same
from gpugate.webhook.report import yaml_text
from gpugate.webhook.report.located import DocumentPlaces
from gpugate.webhook.testing.results import Failure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.webhook.manifests.case_format import Definition, Places
    from gpugate.webhook.manifests.objects import Manifest
    from gpugate.webhook.report.located import Place
    from gpugate.webhook.testing.cases import Case, InlineCase
    from gpugate.webhook.testing.setup import Prepared, Setup


@dataclass(frozen=True, slots=True)
class Judged:
    """One object that was judged, and the verdict on it."""

    ready: Prepared
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A test that was run.

    Attributes:
        case: the test.
        failures: the differences from what it expects. The text of each is a sentence, the place with a frame of the
            file, and what was expected and came.
        judged: the objects that were judged: one, or as many as a file with expectations holds.
        seconds: how long it took.
        expectations: how many a file with expectations holds.
    """

    case: Case | InlineCase
    failures: tuple[Failure, ...]
    judged: tuple[Judged, ...]
    seconds: float = 0.0
    expectations: int = 0

    @property
    def passed(self) -> bool:
        """Whether the verdict is what the test expects."""
        return not self.failures

    @property
    def verdict(self) -> Verdict:
        """The verdict on the object; the last one of a file that holds several."""
        return self.judged[-1].verdict

    @property
    def ruleset(self) -> Ruleset:
        """The rules by which it was judged."""
        return self.judged[-1].ready.ruleset


_MOST_LINES: Final = 60


def differing(expected: Sequence[str], got: Sequence[str]) -> Iterator[str]:
    """Yield lines that differ: `-` expected, `+` got, with some of those around them."""
    yield "- expected, + got"
    lines = list(difflib.unified_diff(expected, got, lineterm="", n=2))[2:]
    yield from (line for line in lines[:_MOST_LINES] if not line.startswith("@@"))
    if len(lines) > _MOST_LINES:
        yield f"... {len(lines) - _MOST_LINES} lines more"


Effect = Literal["deny", "warn", "record", "mutate"]
_EFFECTS: Final[dict[Stance, Effect]] = {Stance.ENFORCE: "deny", Stance.WARN: "warn", Stance.AUDIT: "record"}


@dataclass(frozen=True, slots=True)
class Observed:
    """Something that one policy says at a field, and where in the file that is."""

    policy: str
    effect: Effect
    path: str
    message: str
    place: Place


class ObservedPlaces:
    """Where the fields of one object stand in its file."""

    def __init__(self, manifest: Manifest) -> None:
        self._places = DocumentPlaces(manifest.document)
        self._prefix = manifest.prefix

    def find(self, path: Path) -> Place:
        """Return the place of a field of the object."""
        return self._places.find((*self._prefix, *path))


def observed(verdict: Verdict, places: ObservedPlaces) -> Iterator[Observed]:
    """Yield every finding and every change, in the order of the catalogue."""
    for finding in verdict.findings:
        effect = _EFFECTS[finding.stance]
        yield Observed(finding.policy, effect, render(finding.path), finding.message, places.find(finding.path))
    for policy, patch in verdict.patches:
        yield Observed(policy, "mutate", render(patch.path), patch.reason, places.find(patch.path))
    for policy, mutation in verdict.template_patches:
        path = mutation.patch.path
        yield Observed(policy, "mutate", render(path), mutation.patch.reason, places.find(path))


EFFECTS: Final[tuple[Effect, ...]] = get_args(Effect)
SAID: Final[dict[Effect, str]] = {"deny": "denies", "warn": "warns", "record": "records", "mutate": "mutates"}


def wanted(expect: Expect) -> dict[Effect, tuple[str, ...]]:
    """Return the policies that a test expects something of, by what that is."""
    return {"deny": expect.deny, "warn": expect.warn, "record": expect.record, "mutate": expect.mutate}


def effects(case: Case, expect: Expect, judged: Judged, seen: Sequence[Observed]) -> Iterator[Failure]:
    """Yield what is expected and does not come, then what comes and is not expected."""
    asked = wanted(expect)
    for effect in EFFECTS:
        for index, policy in enumerate(asked[effect]):
            if not any((finding.policy, finding.effect) == (policy, effect) for finding in seen):
                place = case.error(("expect", effect, index), "").place
                yield Failure(f"{policy} is expected to {effect}", place, (why_not(policy, judged, seen),))
    if expect.also == "any":
        return
    # A whole patch or a whole object says more than who makes it.
    by_patch = expect.patch is not None or expect.fixed is not None
    for finding in seen:
        excused = finding.effect == "mutate" and by_patch and not expect.mutate
        if finding.policy not in asked[finding.effect] and not excused:
            at = f"{finding.path}: " if finding.path else ""
            message = f"{finding.policy} {SAID[finding.effect]}, which is not expected"
            yield Failure(message, finding.place, (f"{at}{finding.message}",))


def why_not(policy: str, judged: Judged, seen: Sequence[Observed]) -> str:
    """Say what a policy does instead of what is expected of it."""
    others = dict.fromkeys(SAID[finding.effect] for finding in seen if finding.policy == policy)
    if others:
        return f"it {' and '.join(others)}"
    if policy not in {rule.policy.id for rule in judged.ready.ruleset.rules}:
        return "it is off in this configuration"
    outcome = next((outcome for outcome in judged.verdict.outcomes if outcome.policy == policy), None)
    if outcome is None:
        what = f"{judged.ready.request.operation} of {judged.ready.request.kind.kind}"
        return f"it does not apply to this {what}; `gpugate explain {policy}` lists its kinds"
    if outcome.skipped:
        return f"it was not evaluated: {'; '.join(outcome.skipped)}"
    return "it finds nothing"


def located(case: Case, expect: Expect, judged: Judged, seen: Sequence[Observed]) -> Iterator[Failure]:
    """Yield places at which nothing is found, and what is found elsewhere."""
    for policy, places in expect.at.items():
        asked = listed(places)
        findings = [finding for finding in seen if finding.policy == policy]
        if not findings:
            yield from _finds_nothing(case, expect, judged, ("at", policy))
            continue
        for index, where in enumerate(asked):
            if not any(fits(where, finding) for finding in findings):
                step = (index,) if isinstance(places, tuple) else ()
                place = case.error(("expect", "at", policy, *step), "").place
                got = tuple(dict.fromkeys(f"it is at {_at(finding)}" for finding in findings))
                yield Failure(f"{policy} finds nothing at {_written(where)}", place, got)
        for finding in findings:
            if not any(fits(where, finding) for where in asked):
                yield Failure(f"{policy} finds something at {_at(finding)}, which is not expected", finding.place)


def _finds_nothing(case: Case, expect: Expect, judged: Judged, at: tuple[str, str]) -> Iterator[Failure]:
    """Say that a policy finds nothing, unless that has been said because it is expected to do something."""
    policy = at[1]
    if not any(policy in policies for policies in wanted(expect).values()):
        place = case.error(("expect", *at), "").place
        yield Failure(f"{policy} finds nothing", place, (why_not(policy, judged, ()),))


def listed(places: Places) -> tuple[Where, ...]:
    """Return places as a list of them, whichever way they are written."""
    several = places if isinstance(places, tuple) else (places,)
    return tuple(Where(path=entry) if isinstance(entry, str) else entry for entry in several)


def fits(where: Where, finding: Observed) -> bool:
    """Tell whether something is at a place."""
    return where.path in {None, finding.path} and where.line in {None, finding.place.line}


def _written(where: Where) -> str:
    path = "the object" if where.path == "" else where.path
    line = f"line {where.line}" if where.line else ""
    return ", ".join(part for part in (path, line) if part)


def _at(finding: Observed) -> str:
    return f"{finding.path or 'the object'}, line {finding.place.line}"


def messages(case: Case, expect: Expect, judged: Judged, seen: Sequence[Observed]) -> Iterator[Failure]:
    """Yield texts that no message of their policy contains."""
    for policy, texts in expect.message.items():
        present = [finding.message for finding in seen if finding.policy == policy]
        if not present and policy not in expect.at:
            yield from _finds_nothing(case, expect, judged, ("message", policy))
        for index, text in enumerate((texts,) if isinstance(texts, str) else texts):
            if present and not any(text in message for message in present):
                step = () if isinstance(texts, str) else (index,)
                place = case.error(("expect", "message", policy, *step), "").place
                details = tuple(dict.fromkeys(f"it says: {message}" for message in present))
                yield Failure(f"no message of {policy} contains {text!r}", place, details)


_EXPECT: Final = ("expect",)


def compare(case: Case, definition: Definition, judged: Judged, setup: Setup) -> Iterator[Failure]:
    """Yield every difference between a verdict and what a test expects.

    Raises:
        CaseFileError: the object that is expected after mutation cannot be read.
    """
    expect, verdict, places = definition.expect, judged.verdict, ObservedPlaces(judged.ready.manifest)
    seen = list(observed(verdict, places))
    failures = [*broken(verdict, places), *malformed(verdict, places, expect.malformed)]
    failures += _well_formed(case, definition, verdict)
    failures += effects(case, expect, judged, seen)
    failures += located(case, expect, judged, seen)
    failures += messages(case, expect, judged, seen)
    failures += _skipped(case, definition, verdict)
    if expect.patch is not None:
        wanted: list[Any] = [_operation(operation) for operation in expect.patch]
        got: list[Any] = list(verdict.operations)
        if not same(wanted, got):
            details = differing(yaml_text.block(wanted).splitlines(), yaml_text.block(got).splitlines())
            failures.append(_failure(case, ("patch",), "the patch differs", *details))
    if expect.fixed is not None:
        failures += _fixed(case, definition, verdict, setup)
    if expect.allow not in {None, verdict.allowed} and not failures:
        what = "goes through" if verdict.allowed else "is denied"
        failures.append(_failure(case, ("allow",), f"the request {what}", *verdict.denials))
    yield from failures


def _failure(case: Case, below: Path, message: str, *details: str) -> Failure:
    return Failure(message, case.error((*_EXPECT, *below), "").place, details)


def broken(verdict: Verdict, places: ObservedPlaces) -> Iterator[Failure]:
    """Yield the policies that broke, which nobody expects."""
    for outcome in verdict.outcomes:
        if outcome.error:
            yield Failure(f"{outcome.policy} failed: {outcome.error}", places.find(()))


def malformed(verdict: Verdict, places: ObservedPlaces, but: Collection[str] = ()) -> Iterator[Failure]:
    """Yield the fields of a wrong type, except some that are expected."""
    for wrong in verdict.malformed:
        path = render(wrong.path)
        if path not in but:
            yield Failure(f"{path}: {wrong.message}", places.find(wrong.path), ("the API server refuses it",))


def _well_formed(case: Case, definition: Definition, verdict: Verdict) -> Iterator[Failure]:
    got = {render(wrong.path) for wrong in verdict.malformed}
    for index, path in enumerate(definition.expect.malformed):
        if path not in got:
            yield _failure(case, ("malformed", index), f"{path} is well-formed")


def _skipped(case: Case, definition: Definition, verdict: Verdict) -> Iterator[Failure]:
    wanted = definition.expect.skip
    if wanted is None:
        return
    got = {outcome.policy: outcome.skipped for outcome in verdict.outcomes if outcome.skipped}
    for index, policy in enumerate(wanted):
        if policy not in got:
            yield _failure(case, ("skip", index), f"{policy} was evaluated")
    for policy, reasons in got.items():
        if policy not in wanted:
            yield _failure(case, ("skip",), f"{policy} was not evaluated: {'; '.join(reasons)}")


def _operation(operation: msgspec.Struct) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(operation).items() if value is not msgspec.UNSET}


def _fixed(case: Case, definition: Definition, verdict: Verdict, setup: Setup) -> Iterator[Failure]:
    if definition.expect.fixed is None:
        return
    from gpugate.webhook.testing.setup import GivenObjects  # noqa: PLC0415 -- few tests expect an object

    given = GivenObjects(case, setup.files, definition.request.namespace or "default")
    wanted = with_defaults(given.one((*_EXPECT, "fixed"), definition.expect.fixed).request)
    got = _defaulted(wanted.kind, verdict.object)
    if not same(wanted.object, got):
        written = [yaml_text.block(value).splitlines() for value in (wanted.object or {}, got or {})]
        yield _failure(case, ("fixed",), "the resulting object differs", *differing(*written))


def _defaulted(kind: GroupVersionKind, obj: dict[str, Json] | None) -> dict[str, Json] | None:
    return with_defaults(Request(kind, Operation.CREATE, obj)).object


def refuse_contradictions(case: Case, expect: Expect, known: Collection[str]) -> None:
    """Refuse expectations that cannot be meant.

    Args:
        case: the test.
        expect: what it expects.
        known: the id of every policy there is.

    Raises:
        CaseFileError: a policy that does not exist, an expectation that contradicts another one, or one that every
            verdict meets.
    """
    for path, policy in _named(expect):
        if policy not in known:
            raise case.error(("expect", *path), f"unknown policy {policy}; {suggestion(policy, known)}")
    asked = {policy for policies in wanted(expect).values() for policy in policies}
    for section, members in (("at", expect.at), ("message", expect.message)):
        for policy in members:
            if policy not in asked and expect.also is None:
                message = f"{policy} is in none of {', '.join(EFFECTS)}: say what it does, or `also: any`"
                raise case.error(("expect", section, policy), message)
    if expect.allow and expect.deny:
        raise case.error(("expect", "allow"), "what a policy denies is not allowed: leave `allow` or `deny`")
    _refuse_empty(case, expect)


def _refuse_empty(case: Case, expect: Expect) -> None:
    """Refuse expectations that every verdict meets: such a test shows nothing."""
    if expect == Expect(also="any"):
        raise case.error(
            ("expect", "also"), "the test accepts any finding: write what else is expected, `allow` at least"
        )
    for policy, places in expect.at.items():
        if not listed(places) or any(where.path is None and where.line is None for where in listed(places)):
            raise case.error(("expect", "at", policy), "no place: write the field, or `path`, `line` or both")
    for policy, texts in expect.message.items():
        if not texts or "" in (texts if isinstance(texts, tuple) else (texts,)):
            raise case.error(("expect", "message", policy), "no text: write a part of the message")


def suggestion(policy: str, known: Collection[str]) -> str:
    """Say what to write instead of a policy that does not exist."""
    near = near_misses(policy, known)
    return f"did you mean {near[0]}?" if near else "`gpugate policies` lists them"


def _named(expect: Expect) -> Iterator[tuple[Path, str]]:
    for section, policies in (*wanted(expect).items(), ("skip", expect.skip or ())):
        yield from (((section, index), policy) for index, policy in enumerate(policies))
    for key in ("at", "message"):
        yield from (((key, policy), policy) for policy in getattr(expect, key))
