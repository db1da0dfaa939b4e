"""Run the tests of case files and manifests, and collect results and coverage."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpugate.policies.engine.config import ConfigError
from gpugate.policies.engine.defaults import with_defaults
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem, excerpt, lines_of_template
from gpugate.webhook.report.located import Location
from gpugate.webhook.testing.cases import AnyCase, Case, CaseFileError, ExampleCase, InlineCase
from gpugate.webhook.testing.comparing import (
    SAID,
    CaseResult,
    Evaluated,
    Observed,
    ObservedLocations,
    broken,
    compare,
    malformed,
    observed,
    refuse_contradictions,
    suggestion,
    why_not,
)
from gpugate.webhook.testing.expect_comments import Annotated, Expected, read_annotated
from gpugate.webhook.testing.pairs import bad_file, becomes, is_pair, named_policies, read_bad
from gpugate.webhook.testing.results import Ending, Failure, PolicyCoverage, TestedCase
from gpugate.webhook.testing.setup import Prepared, Setup, facts_of, prepared

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Outcome


def run_inline(case: InlineCase, setup: Setup | None = None) -> CaseResult:
    """Evaluate the manifests in a file and compare the findings with its comments.

    A `fixed-` file is also compared with the result of fixing the `bad-` file beside it.

    Raises:
        CaseFileError: the file cannot be read, or a comment names a policy that does not exist.
    """
    started = time.perf_counter()
    setup = setup or Setup()
    read = read_annotated(case.file, case.text)
    _refuse_unknown(case, read, setup.known)
    evaluated = [Evaluated(ready, ready.evaluate()) for ready in _prepared(case, read, setup)]
    # A new version of the library may find something else in an example of a policy outside of it.
    own = setup.catalog.origins if setup.catalog.is_example(case.file) else None
    failures = list(_compared(case, read, evaluated, own))
    if is_pair(case.file):
        bad = read_bad(case.file)
        (*_, ready) = _prepared(InlineCase(bad_file(case.file), "", ""), bad, setup)
        failures += becomes(ready, named_policies(case.file, bad, setup.known), read)
    return CaseResult(case, tuple(failures), tuple(evaluated), time.perf_counter() - started, len(read.expected))


def _refuse_unknown(case: InlineCase, read: Annotated, known: Collection[str]) -> None:
    for expected in sorted(read.expected, key=lambda expectation: expectation.line):
        if expected.policy not in known:
            message = f"unknown policy {expected.policy}; {suggestion(expected.policy, known)}"
            raise CaseFileError(comment_place(case, expected), message)


def comment_place(case: InlineCase, expected: Expected) -> Location:
    """Return the location of an expectation in a file."""
    lines = case.text.splitlines()
    line = lines[expected.line - 1]
    column = line.rfind(expected.policy)
    around = excerpt(lines_of_template(lines), expected.line, 1)
    end = column + 1 + len(expected.policy)
    return Location(case.file, expected.line, column + 1, end, around.lines, around.first_line)


def _prepared(case: InlineCase, read: Annotated, setup: Setup) -> Iterator[Prepared]:
    try:
        ruleset, needs = setup.bound(read.config or setup.config)
    except ConfigError as error:
        raise CaseFileError(Location(case.file), str(error)) from None
    everything = (manifest.request for manifest in (*read.context, *read.manifests))
    facts = facts_of(everything, needs, complete=read.complete)
    for manifest in read.manifests:
        yield Prepared(manifest, with_defaults(read.request(manifest)), facts, ruleset, setup.today)


def _compared(
    case: InlineCase, read: Annotated, evaluated: Sequence[Evaluated], own: Collection[str] | None
) -> Iterator[Failure]:
    """Yield what differs; findings of other policies than those in `own` are not unexpected, if it is given."""
    observations: list[Observed] = []
    for part in evaluated:
        places = ObservedLocations(part.ready.manifest)
        yield from broken(part.verdict, places)
        yield from malformed(part.verdict, places)
        observations += observed(part.verdict, places)
    got = {Expected(finding.location.line, finding.policy) for finding in observations}
    for missing in sorted(read.expected - got, key=lambda expectation: expectation.line):
        lines = dict.fromkeys(finding.location.line for finding in observations if finding.policy == missing.policy)
        why = [f"it finds something on line {line}" for line in lines]
        why = why or [why_not(missing.policy, evaluated[-1], observations)]
        yield Failure(f"{missing.policy} finds nothing on this line", comment_place(case, missing), tuple(why))
    already: set[Expected] = set()
    for finding in observations:
        here = Expected(finding.location.line, finding.policy)
        if here not in read.expected and here not in already and (own is None or finding.policy in own):
            already.add(here)
            at = f"{finding.path}: " if finding.path else ""
            message = f"{finding.policy} {SAID[finding.effect]}, which is not expected"
            yield Failure(message, finding.location, (f"{at}{finding.message}",))


def run_example(case: ExampleCase, setup: Setup | None = None) -> CaseResult:
    """Evaluate an example in a policy document: a denied one has a finding of its policy, an allowed one has none.

    Findings of other policies are not unexpected.

    Raises:
        CaseFileError: the policy is not loaded, or the example contains something that is not an object.
    """
    started = time.perf_counter()
    setup = setup or Setup()
    policy = case.example.example.policy
    if policy not in setup.known:
        message = (
            f"policy {policy} is not loaded: name the directory of its folder with `policy_paths` or --policy-path"
        )
        raise CaseFileError(case.places.find(("id",)), message)
    ruleset, needs = setup.bound(setup.config)
    manifests = list(_written(case))
    facts = facts_of((manifest.request for manifest in manifests), needs, complete=False)
    ready = Prepared(manifests[-1], with_defaults(manifests[-1].request), facts, ruleset, setup.today)
    evaluated = Evaluated(ready, ready.evaluate())
    failures = tuple(_of_example(case, policy, evaluated))
    return CaseResult(case, failures, (evaluated,), time.perf_counter() - started)


def _written(case: ExampleCase) -> Iterator[Manifest]:
    """Yield the objects of an example.

    Raises:
        CaseFileError: one is not an object, or there is none.
    """
    document = case.example.document
    last = None
    for path, value in case.example.objects:
        last = None
        for part in objects(replace(document, value=value)):
            if isinstance(part, Problem) and not part.warning:
                raise CaseFileError(case.places.find(path), f"{part.message}: {part.remedy}")
            if isinstance(part, Manifest):
                last = Manifest(document, (*path, *part.prefix), part.request)
                yield last
    if last is None:
        message = "not an object for the API server: write one with apiVersion and kind"
        raise CaseFileError(case.places.find(case.example.path), message)


def _of_example(case: ExampleCase, policy: str, evaluated: Evaluated) -> Iterator[Failure]:
    places = ObservedLocations(evaluated.ready.manifest)
    yield from broken(evaluated.verdict, places)
    yield from malformed(evaluated.verdict, places)
    findings = [finding for finding in observed(evaluated.verdict, places) if finding.policy == policy]
    if not case.example.example.allowed:
        if not findings:
            location = case.places.find(case.example.path)
            yield Failure(f"{policy} finds nothing in a denied example", location, (why_not(policy, evaluated, ()),))
        return
    for finding in findings:
        at = f"{finding.path}: " if finding.path else ""
        message = f"{policy} finds something in an allowed example"
        yield Failure(message, finding.location, (f"{at}{finding.message}",))
    skipped = next((outcome.skipped for outcome in evaluated.verdict.outcomes if outcome.policy == policy), ())
    if skipped and not findings:
        yield Failure(f"{policy} was not evaluated", case.places.find(case.example.path), tuple(skipped))


def run_case(case: Case, setup: Setup | None = None) -> CaseResult:
    """Run a test of a case file.

    Args:
        case: the test.
        setup: the configuration and files that the tests of a run share; use one for all of them, for speed.

    Raises:
        CaseFileError: the test is invalid, or a file or object that it names is missing or cannot be read.
    """
    started = time.perf_counter()
    setup = setup or Setup()
    definition = case.definition
    if isinstance(definition, CaseFileError):
        raise definition
    refuse_contradictions(case, definition.expect, setup.known)
    ready = prepared(case, definition, setup)
    evaluated = Evaluated(ready, ready.evaluate())
    failures = tuple(compare(case, definition, evaluated, setup))
    return CaseResult(case, failures, (evaluated,), time.perf_counter() - started)


class Tally:
    """The policies that the tests of a run exercise; only tests that pass count."""

    def __init__(self, ruleset: Ruleset, counted: Collection[str] | None = None) -> None:
        """Start with the policies of the default configuration of tests; with `counted`, only these count."""
        self._catalog = [policy.id for policy in ruleset.catalog if counted is None or policy.id in counted]
        self._bound = {rule.policy.id for rule in ruleset.rules}
        self._failing: set[str] = set()
        self._passed: set[str] = set()

    def add(self, result: CaseResult) -> None:
        """Add a test that was run."""
        self._bound |= {rule.policy.id for rule in result.ruleset.rules}
        if not result.passed:
            return
        named = _named(result)
        # The example of a document tests one policy, whatever others find in the object.
        only = result.case.example.example.policy if isinstance(result.case, ExampleCase) else None
        for evaluated in result.evaluated:
            for outcome in evaluated.verdict.outcomes:
                if only is not None and outcome.policy != only:
                    continue
                if _finds(outcome):
                    if named is None or outcome.policy in named:
                        self._failing.add(outcome.policy)
                elif named is None and not outcome.skipped and not outcome.error:
                    self._passed.add(outcome.policy)

    def coverage(self) -> PolicyCoverage:
        """Return the exercised policies in the order of the catalog."""
        bound = tuple(policy_id for policy_id in self._catalog if policy_id in self._bound)
        return PolicyCoverage(bound, frozenset(self._failing), frozenset(self._passed))


def _finds(outcome: Outcome) -> bool:
    return bool(outcome.findings or outcome.patches or outcome.template_patches)


def _named(result: CaseResult) -> set[str] | None:
    """Return the policies for which a test has an expectation; None if it has one for every policy, as most do."""
    definition = result.case.definition if isinstance(result.case, Case) else None
    if definition is None or isinstance(definition, CaseFileError) or definition.expect.also is None:
        return None
    expect = definition.expect
    return {*expect.deny, *expect.warn, *expect.record, *expect.mutate}


@dataclass(slots=True)
class Run:
    """The results of the tests that were run, in their order, or the reason why there is none."""

    results: list[tuple[AnyCase, CaseResult | CaseFileError]] = field(default_factory=list)
    coverage: PolicyCoverage | None = None

    @property
    def failed(self) -> list[CaseResult]:
        """The tests whose verdict is not what they expect."""
        return [result for _, result in self.results if not isinstance(result, CaseFileError) and not result.passed]


def run_tests(
    cases: Iterable[AnyCase], setup: Setup, *, stop: bool = False, counted: Collection[str] | None = None
) -> Run:
    """Run tests; `stop` at the first that does not pass. With `counted`, the coverage is that of these policies."""
    run, tally = Run(), Tally(setup.bound(setup.config)[0], counted)
    for case in cases:
        result = run_one(case, setup)
        run.results.append((case, result))
        if not isinstance(result, CaseFileError):
            tally.add(result)
        if stop and (isinstance(result, CaseFileError) or not result.passed):
            break
    run.coverage = tally.coverage()
    return run


def run_one(case: AnyCase, setup: Setup) -> CaseResult | CaseFileError:
    """Run a test; return the error if it cannot be run."""
    try:
        if isinstance(case, ExampleCase):
            return run_example(case, setup)
        return run_case(case, setup) if isinstance(case, Case) else run_inline(case, setup)
    except CaseFileError as error:
        return error


def reported(case: AnyCase, result: CaseResult | CaseFileError, *, updated: bool = False) -> TestedCase:
    """Return a test in the form of reports; `updated` if its expectations were rewritten."""
    if isinstance(result, CaseFileError):
        return TestedCase(case.file, case.line, case.name, Ending.BROKEN, (mistake(result),))
    ending = Ending.UPDATED if updated else Ending.PASSED if result.passed else Ending.FAILED
    manifests = len(result.evaluated) if isinstance(case, InlineCase) else 0
    return TestedCase(
        case.file,
        case.line,
        case.name,
        ending,
        result.failures,
        result.seconds,
        manifests,
        result.expectations,
        can_update=not isinstance(case, ExampleCase),
    )


def mistake(error: CaseFileError) -> Failure:
    """Return the error of a test that cannot be run, in the form of reports."""
    return Failure(error.message, error.location)
