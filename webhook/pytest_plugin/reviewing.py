"""Judges the objects of a test by policies. The schemas by which `gpugate check` judges them, too, are not asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpugate.policies.engine.config import API_VERSION, KIND, parse_config
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.sdk.objects import Operation
from gpugate.webhook.check.locate import Locator
from gpugate.webhook.policy_tests.prepared import Prepared, facts_of
from gpugate.webhook.policy_tests.setup import Setup
from gpugate.webhook.pytest_plugin.answers import Answer
from gpugate.webhook.pytest_plugin.loading import as_manifest

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.objects import Request
    from gpugate.webhook.manifests.objects import Manifest
    from gpugate.webhook.pytest_plugin.shown import Shown

    Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class Review(Answer):
    """What admission would say of one object, and what would be stored of it."""

    verdict: Verdict

    @property
    def patched(self) -> dict[str, Any] | None:
        """The object as it would be stored, with the defaults of the API server; None for a DELETE."""
        return self.verdict.object

    @property
    def patch(self) -> list[dict[str, Any]]:
        """The operations (RFC 6902) that the webhook would answer with."""
        return [dict(operation) for operation in self.verdict.operations]


class Reviewer:
    """Judges objects with one configuration."""

    def __init__(self, setup: Setup, shown: list[Shown]) -> None:
        self._setup = setup
        self._shown = shown

    def configured(self, policies: Mapping[str, Any] | None = None, **sections: Any) -> Reviewer:
        """Return one with another configuration: the sections of a policy file, such as `mode` and `exemptions`.

        Raises:
            ConfigError: it is refused.
        """
        document = {"apiVersion": API_VERSION, "kind": KIND, **sections}
        if policies is not None:
            document["policies"] = dict(policies)
        return Reviewer(Setup(parse_config(document), self._setup.today), self._shown)

    def review(  # noqa: PLR0913 -- what an admission request holds, all by name
        self,
        obj: Object,
        *,
        old: Object | None = None,
        operation: str = "",
        subresource: str = "",
        user: str = "",
        groups: Sequence[str] = (),
        namespace: str = "default",
        namespace_labels: Mapping[str, str] | None = None,
        dry_run: bool = False,
        context: Sequence[Object] = (),
        complete_context: bool = False,
        today: dt.date | None = None,
    ) -> Review:
        """Judge one object as the webhook would, mutations and then validation.

        Args:
            obj: the object, from `manifest(...)`, a builder or written out.
            old: the object before an UPDATE.
            operation: CREATE, UPDATE or DELETE; an UPDATE where `old` is given, else a CREATE.
            subresource: such as `scale`.
            user: who asks.
            groups: the groups of who asks.
            namespace: of an object that names none.
            namespace_labels: the labels of the namespace that the object is in.
            dry_run: whether nothing is to be stored.
            context: other objects that exist.
            complete_context: whether no others exist.
            today: the day, for exemptions; the real one by default.

        Raises:
            ObjectError: what is given is no object.
        """
        manifest = as_manifest(obj, namespace)
        others = [manifest.request, *(as_manifest(each, namespace).request for each in context)]
        if namespace_labels is not None:
            name = manifest.request.namespace
            labelled = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": namespace_labels}}
            others.append(as_manifest(labelled, name).request)
        asked = replace(
            manifest.request,
            operation=Operation(operation) if operation else Operation.UPDATE if old is not None else Operation.CREATE,
            old_object=as_manifest(old, namespace).request.object if old is not None else None,
            subresource=subresource,
            user=user,
            groups=tuple(groups),
            dry_run=dry_run,
        )
        if asked.operation is Operation.DELETE:
            asked = replace(asked, object=None, old_object=manifest.request.object)
        return self._judged(manifest, asked, others, complete=complete_context, today=today)

    def check(self, *objects: Object, namespace: str = "default", complete_context: bool = False) -> list[Review]:
        """Judge objects that are created together, each with the others as what else exists.

        Policies judge them, as in `gpugate check`; schemas do not.

        Raises:
            ObjectError: one of them is no object.
        """
        manifests = [as_manifest(each, namespace) for each in objects]
        requests = [each.request for each in manifests]
        return [self._judged(each, each.request, requests, complete=complete_context) for each in manifests]

    def _judged(
        self,
        manifest: Manifest,
        request: Request,
        others: Sequence[Request],
        *,
        complete: bool,
        today: dt.date | None = None,
    ) -> Review:
        ruleset, needs = self._setup.bound(self._setup.config)
        facts = facts_of(others, needs, complete=complete)
        verdict = Prepared(manifest, with_defaults(request), facts, ruleset, today or self._setup.today).judge()
        locator = Locator({rule.policy.id: rule.policy for rule in ruleset.rules})
        title = f"{request.operation} of {request.kind.kind} {request.shown_name}"
        found = Review(title, tuple(locator.findings(manifest, verdict)), verdict)
        self._shown.append(found)
        return found
