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
from gpugate.webhook.report.located import DocumentLocations
from gpugate.webhook.testing.results import Failure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.webhook.manifests.case_format import Definition, Places
    from gpugate.webhook.manifests.objects import Manifest
    from gpugate.webhook.report.located import Location
    from gpugate.webhook.testing.cases import AnyCase, Case
    from gpugate.webhook.testing.setup import Prepared, Setup


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluated object, and the verdict on it."""

    ready: Prepared
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A test that was run.

    Attributes:
        case: the test.
        failures: the differences from its expectations. The text of each is a sentence, the location with a frame of
            the file, and the expected and actual values.
        evaluated: the evaluated objects: one, or all of a file with expectations.
        seconds: its duration.
        expectations: the number of expectations in the file.
    """

    case: AnyCase
    failures: tuple[Failure, ...]
    evaluated: tuple[Evaluated, ...]
    seconds: float = 0.0
    expectations: int = 0

    @property
    def passed(self) -> bool:
        """Whether the verdict is what the test expects."""
        return not self.failures

    @property
    def verdict(self) -> Verdict:
        """The verdict on the object; on the last one of a file with several."""
        return self.evaluated[-1].verdict

    @property
    def ruleset(self) -> Ruleset:
        """The rules that evaluated it."""
        return self.evaluated[-1].ready.ruleset


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
    """A finding or a patch of a policy at a field, and its location in the file."""

    policy: str
    effect: Effect
    path: str
    message: str
    location: Location


class ObservedLocations:
    """The locations of the fields of one object in its file."""

    def __init__(self, manifest: Manifest) -> None:
        self._places = DocumentLocations(manifest.document)
        self._prefix = manifest.prefix

    def find(self, path: Path) -> Location:
        """Return the location of a field of the object."""
        return self._places.find((*self._prefix, *path))


def observed(verdict: Verdict, places: ObservedLocations) -> Iterator[Observed]:
    """Yield the findings and the patches, in the order of the catalog."""
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
    """Return the policies for which a test has expectations, by the expected effect."""
    return {"deny": expect.deny, "warn": expect.warn, "record": expect.record, "mutate": expect.mutate}


def effects(case: Case, expect: Expect, evaluated: Evaluated, observations: Sequence[Observed]) -> Iterator[Failure]:
    """Yield the expected effects that are missing, then the unexpected ones."""
    expected = wanted(expect)
    for effect in EFFECTS:
        for index, policy in enumerate(expected[effect]):
            if not any((finding.policy, finding.effect) == (policy, effect) for finding in observations):
                location = case.error(("expect", effect, index), "").location
                yield Failure(
                    f"{policy} is expected to {effect}", location, (why_not(policy, evaluated, observations),)
                )
    if expect.also == "any":
        return
    # An expected patch or object says more than the name of its policy.
    by_patch = expect.patch is not None or expect.fixed is not None
    for finding in observations:
        excused = finding.effect == "mutate" and by_patch and not expect.mutate
        if finding.policy not in expected[finding.effect] and not excused:
            at = f"{finding.path}: " if finding.path else ""
            message = f"{finding.policy} {SAID[finding.effect]}, which is not expected"
            yield Failure(message, finding.location, (f"{at}{finding.message}",))


def why_not(policy: str, evaluated: Evaluated, observations: Sequence[Observed]) -> str:
    """Describe what a policy does instead of the expected effect."""
    others = dict.fromkeys(SAID[finding.effect] for finding in observations if finding.policy == policy)
    if others:
        return f"it {' and '.join(others)}"
    if policy not in {rule.policy.id for rule in evaluated.ready.ruleset.rules}:
        return "it is off in this configuration"
    outcome = next((outcome for outcome in evaluated.verdict.outcomes if outcome.policy == policy), None)
    if outcome is None:
        request = f"{evaluated.ready.request.operation} of {evaluated.ready.request.kind.kind}"
        return f"it does not apply to this {request}; `gpugate explain {policy}` lists its kinds"
    if outcome.skipped:
        return f"it was not evaluated: {'; '.join(outcome.skipped)}"
    return "it finds nothing"


def located(case: Case, expect: Expect, evaluated: Evaluated, observations: Sequence[Observed]) -> Iterator[Failure]:
    """Yield expected locations without a finding, and findings at other locations."""
    for policy, places in expect.at.items():
        expected = listed(places)
        findings = [finding for finding in observations if finding.policy == policy]
        if not findings:
            yield from _finds_nothing(case, expect, evaluated, ("at", policy))
            continue
        for index, where in enumerate(expected):
            if not any(fits(where, finding) for finding in findings):
                step = (index,) if isinstance(places, tuple) else ()
                location = case.error(("expect", "at", policy, *step), "").location
                got = tuple(dict.fromkeys(f"it is at {_at(finding)}" for finding in findings))
                yield Failure(f"{policy} finds nothing at {_written(where)}", location, got)
        for finding in findings:
            if not any(fits(where, finding) for where in expected):
                yield Failure(f"{policy} finds something at {_at(finding)}, which is not expected", finding.location)


def _finds_nothing(case: Case, expect: Expect, evaluated: Evaluated, at: tuple[str, str]) -> Iterator[Failure]:
    """Yield a failure for a policy without findings, unless a missing effect of it is reported already."""
    policy = at[1]
    if not any(policy in policies for policies in wanted(expect).values()):
        location = case.error(("expect", *at), "").location
        yield Failure(f"{policy} finds nothing", location, (why_not(policy, evaluated, ()),))


def listed(places: Places) -> tuple[Where, ...]:
    """Return locations as a tuple, from each form in which a case file may write them."""
    several = places if isinstance(places, tuple) else (places,)
    return tuple(Where(path=entry) if isinstance(entry, str) else entry for entry in several)


def fits(where: Where, finding: Observed) -> bool:
    """Tell whether a finding is at an expected location."""
    return where.path in {None, finding.path} and where.line in {None, finding.location.line}


def _written(where: Where) -> str:
    path = "the object" if where.path == "" else where.path
    line = f"line {where.line}" if where.line else ""
    return ", ".join(part for part in (path, line) if part)


def _at(finding: Observed) -> str:
    return f"{finding.path or 'the object'}, line {finding.location.line}"


def messages(case: Case, expect: Expect, evaluated: Evaluated, observations: Sequence[Observed]) -> Iterator[Failure]:
    """Yield the expected texts that no message of their policy contains."""
    for policy, texts in expect.message.items():
        present = [finding.message for finding in observations if finding.policy == policy]
        if not present and policy not in expect.at:
            yield from _finds_nothing(case, expect, evaluated, ("message", policy))
        for index, text in enumerate((texts,) if isinstance(texts, str) else texts):
            if present and not any(text in message for message in present):
                step = () if isinstance(texts, str) else (index,)
                location = case.error(("expect", "message", policy, *step), "").location
                details = tuple(dict.fromkeys(f"it says: {message}" for message in present))
                yield Failure(f"no message of {policy} contains {text!r}", location, details)


_EXPECT: Final = ("expect",)


def compare(case: Case, definition: Definition, evaluated: Evaluated, setup: Setup) -> Iterator[Failure]:
    """Yield every difference between a verdict and what a test expects.

    Raises:
        CaseFileError: the object expected after mutation cannot be read.
    """
    expect, verdict, places = definition.expect, evaluated.verdict, ObservedLocations(evaluated.ready.manifest)
    observations = list(observed(verdict, places))
    failures = [*broken(verdict, places), *malformed(verdict, places, expect.malformed)]
    failures += _well_formed(case, definition, verdict)
    failures += effects(case, expect, evaluated, observations)
    failures += located(case, expect, evaluated, observations)
    failures += messages(case, expect, evaluated, observations)
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
        outcome = "goes through" if verdict.allowed else "is denied"
        failures.append(_failure(case, ("allow",), f"the request {outcome}", *verdict.denials))
    yield from failures


def _failure(case: Case, below: Path, message: str, *details: str) -> Failure:
    return Failure(message, case.error((*_EXPECT, *below), "").location, details)


def broken(verdict: Verdict, places: ObservedLocations) -> Iterator[Failure]:
    """Yield the policies that failed with an error, which no test can expect."""
    for outcome in verdict.outcomes:
        if outcome.error:
            yield Failure(f"{outcome.policy} failed: {outcome.error}", places.find(()))


def malformed(verdict: Verdict, places: ObservedLocations, but: Collection[str] = ()) -> Iterator[Failure]:
    """Yield the fields of a wrong type, except the expected ones."""
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
    from gpugate.webhook.testing.setup import WrittenObjects  # noqa: PLC0415 -- few tests expect an object

    reader = WrittenObjects(case, setup.files, definition.request.namespace or "default")
    wanted = with_defaults(reader.read_one((*_EXPECT, "fixed"), definition.expect.fixed).request)
    got = _defaulted(wanted.kind, verdict.object)
    if not same(wanted.object, got):
        written = [yaml_text.block(value).splitlines() for value in (wanted.object or {}, got or {})]
        yield _failure(case, ("fixed",), "the resulting object differs", *differing(*written))


def _defaulted(kind: GroupVersionKind, obj: dict[str, Json] | None) -> dict[str, Json] | None:
    return with_defaults(Request(kind, Operation.CREATE, obj)).object


def refuse_contradictions(case: Case, expect: Expect, known: Collection[str]) -> None:
    """Refuse expectations that contradict each other or name unknown policies.

    Args:
        case: the test.
        expect: what it expects.
        known: the ids of all policies.

    Raises:
        CaseFileError: a policy that does not exist, an expectation that contradicts another one, or one that every
            verdict meets.
    """
    for path, policy in _named(expect):
        if policy not in known:
            raise case.error(("expect", *path), f"unknown policy {policy}; {suggestion(policy, known)}")
    expected = {policy for policies in wanted(expect).values() for policy in policies}
    for section, members in (("at", expect.at), ("message", expect.message)):
        for policy in members:
            if policy not in expected and expect.also is None:
                message = f"{policy} is in none of {', '.join(EFFECTS)}: say what it does, or `also: any`"
                raise case.error(("expect", section, policy), message)
    if expect.allow and expect.deny:
        raise case.error(("expect", "allow"), "what a policy denies is not allowed: leave `allow` or `deny`")
    _refuse_empty(case, expect)


def _refuse_empty(case: Case, expect: Expect) -> None:
    """Refuse expectations that every verdict meets."""
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
    """Return the fix for an unknown policy id."""
    near = near_misses(policy, known)
    return f"did you mean {near[0]}?" if near else "`gpugate policies` lists them"


def _named(expect: Expect) -> Iterator[tuple[Path, str]]:
    for section, policies in (*wanted(expect).items(), ("skip", expect.skip or ())):
        yield from (((section, index), policy) for index, policy in enumerate(policies))
    for key in ("at", "message"):
        yield from (((key, policy), policy) for policy in getattr(expect, key))
