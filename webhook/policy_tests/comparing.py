"""Compares the verdict on a test of a case file with what the test expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.objects import Operation, Request
from gpugate.webhook.manifests.edit import same
from gpugate.webhook.policy_tests.differing import differing
from gpugate.webhook.policy_tests.matching import effects, located, messages
from gpugate.webhook.policy_tests.observed import ObservedPlaces, observed
from gpugate.webhook.report import yaml_text
from gpugate.webhook.report.policy_tested import Failure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.objects import GroupVersionKind
    from gpugate.webhook.manifests.case_format import Definition
    from gpugate.webhook.policy_tests.cases import Case
    from gpugate.webhook.policy_tests.results import Judged
    from gpugate.webhook.policy_tests.setup import Setup

_EXPECT: Final = ("expect",)


def compare(case: Case, definition: Definition, judged: Judged, setup: Setup) -> Iterator[Failure]:
    """Yield every difference between a verdict and what a test expects.

    Raises:
        CaseFileError: the object that is expected after mutation cannot be read.
    """
    expect, verdict, places = definition.expect, judged.verdict, ObservedPlaces(judged.ready.manifest)
    seen = list(observed(verdict, places))
    found = [*broken(verdict, places), *malformed(verdict, places, expect.malformed)]
    found += _well_formed(case, definition, verdict)
    found += effects(case, expect, judged, seen)
    found += located(case, expect, judged, seen)
    found += messages(case, expect, judged, seen)
    found += _skipped(case, definition, verdict)
    if expect.patch is not None:
        wanted: list[Any] = [_operation(one) for one in expect.patch]
        got: list[Any] = list(verdict.operations)
        if not same(wanted, got):
            details = differing(yaml_text.block(wanted).splitlines(), yaml_text.block(got).splitlines())
            found.append(_failure(case, ("patch",), "the patch is another one", *details))
    if expect.fixed is not None:
        found += _fixed(case, definition, verdict, setup)
    if expect.allow not in {None, verdict.allowed} and not found:
        what = "goes through" if verdict.allowed else "is denied"
        found.append(_failure(case, ("allow",), f"the request {what}", *verdict.denials))
    yield from found


def _failure(case: Case, below: Path, message: str, *details: str) -> Failure:
    return Failure(message, case.error((*_EXPECT, *below), "").place, details)


def broken(verdict: Verdict, places: ObservedPlaces) -> Iterator[Failure]:
    """Yield the policies that broke, which nobody expects."""
    for outcome in verdict.outcomes:
        if outcome.error:
            yield Failure(f"{outcome.policy} broke: {outcome.error}", places.find(()))


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
            yield _failure(case, ("skip", index), f"{policy} could look")
    for policy, reasons in got.items():
        if policy not in wanted:
            yield _failure(case, ("skip",), f"{policy} could not look: {'; '.join(reasons)}")


def _operation(operation: msgspec.Struct) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(operation).items() if value is not msgspec.UNSET}


def _fixed(case: Case, definition: Definition, verdict: Verdict, setup: Setup) -> Iterator[Failure]:
    if definition.expect.fixed is None:
        return
    from gpugate.webhook.policy_tests.given import GivenObjects  # noqa: PLC0415 -- few tests expect an object

    given = GivenObjects(case, setup.files, definition.request.namespace or "default")
    wanted = with_defaults(given.one((*_EXPECT, "fixed"), definition.expect.fixed).request)
    got = _defaulted(wanted.kind, verdict.object)
    if not same(wanted.object, got):
        written = [yaml_text.block(value).splitlines() for value in (wanted.object or {}, got or {})]
        yield _failure(case, ("fixed",), "the object becomes another one", *differing(*written))


def _defaulted(kind: GroupVersionKind, obj: dict[str, Json] | None) -> dict[str, Json] | None:
    return with_defaults(Request(kind, Operation.CREATE, obj)).object
