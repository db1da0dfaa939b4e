"""Runs a file of manifests whose comments say what policies find in them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import ConfigError
from gpugate.policies.engine.defaults import with_defaults
from gpugate.webhook.manifests.problems import excerpt, lines_of_template
from gpugate.webhook.policy_tests.annotated import Annotated, Expected, read_annotated
from gpugate.webhook.policy_tests.comparing import broken, malformed
from gpugate.webhook.policy_tests.contradictions import suggestion
from gpugate.webhook.policy_tests.errors import CaseFileError
from gpugate.webhook.policy_tests.matching import SAID, why_not
from gpugate.webhook.policy_tests.observed import Observed, ObservedPlaces, observed
from gpugate.webhook.policy_tests.pairs import bad_file, becomes, is_pair, named_policies, read_bad
from gpugate.webhook.policy_tests.prepared import Prepared, facts_of
from gpugate.webhook.policy_tests.results import CaseResult, Judged
from gpugate.webhook.policy_tests.setup import Setup
from gpugate.webhook.report.located import Place
from gpugate.webhook.report.policy_tested import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class InlineCase:
    """A file of manifests with expectations: its name for people, the file's own name, and its text."""

    file: str
    name: str
    text: str = field(repr=False)
    line: int = 1


def run_inline(case: InlineCase, setup: Setup | None = None) -> CaseResult:
    """Judge the manifests in a file and compare what is found with what its comments say.

    A `fixed-` file is also what the `bad-` file beside it becomes.

    Raises:
        CaseFileError: the file cannot be read, or a comment names a policy that does not exist.
    """
    started = time.perf_counter()
    setup = setup or Setup()
    read = read_annotated(case.file, case.text)
    _refuse_unknown(case, read)
    judged = [Judged(ready, ready.judge()) for ready in _prepared(case, read, setup)]
    failures = list(_compared(case, read, judged))
    if is_pair(case.file):
        bad = read_bad(case.file)
        (*_, ready) = _prepared(InlineCase(bad_file(case.file), "", ""), bad, setup)
        failures += becomes(ready, named_policies(case.file, bad), read)
    return CaseResult(case, tuple(failures), tuple(judged), time.perf_counter() - started, len(read.expected))


def _refuse_unknown(case: InlineCase, read: Annotated) -> None:
    known = {policy.id for policy in CATALOG}
    for expected in sorted(read.expected, key=lambda each: each.line):
        if expected.policy not in known:
            message = f"no policy is called {expected.policy}; {suggestion(expected.policy, known)}"
            raise CaseFileError(comment_place(case, expected), message)


def comment_place(case: InlineCase, expected: Expected) -> Place:
    """Return where a file says what is expected."""
    lines = case.text.splitlines()
    line = lines[expected.line - 1]
    column = line.rfind(expected.policy)
    around = excerpt(lines_of_template(lines), expected.line, 1)
    end = column + 1 + len(expected.policy)
    return Place(case.file, expected.line, column + 1, end, around.lines, around.first_line)


def _prepared(case: InlineCase, read: Annotated, setup: Setup) -> Iterator[Prepared]:
    try:
        ruleset, needs = setup.bound(read.config or setup.config)
    except ConfigError as error:
        raise CaseFileError(Place(case.file), str(error)) from None
    everything = (each.request for each in (*read.context, *read.manifests))
    facts = facts_of(everything, needs, complete=read.complete)
    for manifest in read.manifests:
        yield Prepared(manifest, with_defaults(read.request(manifest)), facts, ruleset, setup.today)


def _compared(case: InlineCase, read: Annotated, judged: Sequence[Judged]) -> Iterator[Failure]:
    seen: list[Observed] = []
    for one in judged:
        places = ObservedPlaces(one.ready.manifest)
        yield from broken(one.verdict, places)
        yield from malformed(one.verdict, places)
        seen += observed(one.verdict, places)
    got = {Expected(each.place.line, each.policy) for each in seen}
    for missing in sorted(read.expected - got, key=lambda each: each.line):
        lines = dict.fromkeys(each.place.line for each in seen if each.policy == missing.policy)
        why = [f"it finds something on line {line}" for line in lines]
        why = why or [why_not(missing.policy, judged[-1], seen)]
        yield Failure(f"{missing.policy} finds nothing on this line", comment_place(case, missing), tuple(why))
    said: set[Expected] = set()
    for each in seen:
        here = Expected(each.place.line, each.policy)
        if here not in read.expected and here not in said:
            said.add(here)
            at = f"{each.path}: " if each.path else ""
            message = f"{each.policy} {SAID[each.effect]}, which is not expected"
            yield Failure(message, each.place, (f"{at}{each.message}",))
