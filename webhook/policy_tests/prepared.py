"""Makes a test ready to be judged: its request, the facts and the rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import NAMESPACE, GroupVersionKind, Operation, Request
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.policy_tests.given import GivenObjects

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

    from gpugate.policies.engine.ruleset import Needs, Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Json
    from gpugate.webhook.manifests.case_format import Asked, Definition
    from gpugate.webhook.manifests.objects import Manifest
    from gpugate.webhook.policy_tests.cases import Case
    from gpugate.webhook.policy_tests.setup import Setup


@dataclass(frozen=True, slots=True)
class Prepared:
    """One object to judge, with everything that its verdict depends on."""

    manifest: Manifest
    request: Request
    facts: RunFacts
    ruleset: Ruleset
    today: dt.date

    def judge(self) -> Verdict:
        """Judge it as the webhook does: the mutations, then the validation of what they make of it.

        The schemas by which `gpugate check` judges objects, too, are not asked.
        """
        return evaluate(
            self.ruleset,
            self.request,
            self.facts,
            today=self.today,
            phase=Phase.BOTH,
            template_ceiling=Stance.ENFORCE,
        )


def facts_of(requests: Iterable[Request], needs: Needs, *, complete: bool) -> RunFacts:
    """Return objects as facts, cut to what rules read of them, as the cluster's caches are."""
    projected = (needs.project(with_defaults(request)) for request in requests)
    return RunFacts((fact for fact in projected if fact is not None), complete=complete)


def prepared(case: Case, definition: Definition, setup: Setup) -> Prepared:
    """Make a test of a case file ready.

    Raises:
        CaseFileError: something that the test names is missing, cannot be read, or contradicts something else.
    """
    asked = definition.request
    ruleset, needs = setup.of(case, definition)
    given = GivenObjects(case, setup.files, asked.namespace or "default")
    manifest = given.one(("object",), definition.object)
    found = manifest.request
    if asked.namespace and found.namespace != asked.namespace:
        stands = f"in namespace {found.namespace}" if found.namespace else "in no namespace"
        raise case.error(("request", "namespace"), f"the object is {stands}: leave one of them")
    others = [
        each.request for index, one in enumerate(definition.context) for each in given.all(("context", index), one)
    ]
    if asked.namespace_labels is not None:
        if not found.namespace:
            raise case.error(("request", "namespace_labels"), f"a {found.kind.kind} is in no namespace")
        own = _namespace(found.namespace, asked.namespace_labels)
        others = [each for each in others if (each.kind, each.name) != (own.kind, own.name)] + [own]
    return Prepared(
        manifest=manifest,
        request=with_defaults(_request(case, asked, found, given)),
        facts=facts_of((*others, found), needs, complete=bool(definition.complete_context)),
        ruleset=ruleset,
        today=definition.today or setup.today,
    )


def _request(case: Case, asked: Asked, found: Request, given: GivenObjects) -> Request:
    operation = Operation(asked.operation) if asked.operation else None
    if operation is None:
        operation = Operation.CREATE if asked.old is None else Operation.UPDATE
    if (operation is Operation.UPDATE) is not (asked.old is not None):
        raise case.error(("request",), "an UPDATE needs `old`, the object before it, and only an UPDATE has it")
    made = replace(
        found,
        operation=operation,
        subresource=asked.subresource,
        user=asked.user,
        groups=asked.groups,
        dry_run=asked.dry_run,
    )
    if operation is Operation.DELETE:
        return replace(made, object=None, old_object=found.object)
    if asked.old is not None:
        old = given.one(("request", "old"), asked.old).request
        if (old.kind, old.namespace, old.name) != (found.kind, found.namespace, found.name):
            message = f"{old.kind.kind} {old.shown_name} is another object than {found.kind.kind} {found.shown_name}"
            raise case.error(("request", "old"), f"{message}: an UPDATE changes neither kind nor name")
        return replace(made, old_object=old.object)
    return made


def _namespace(name: str, labels: dict[str, str]) -> Request:
    metadata: dict[str, Json] = {"name": name, "labels": {**labels}}
    obj: dict[str, Json] = {"apiVersion": "v1", "kind": NAMESPACE.name, "metadata": metadata}
    return Request(GroupVersionKind("", "v1", NAMESPACE.name), Operation.CREATE, obj, name=name, namespace=name)
