"""Admits a request as kube-apiserver does: mutating webhooks, then what it fills in itself, then validating webhooks.

Source: `k8s.io/apiserver` pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go, v1.36. Selectors, rules and
match conditions are not here: every webhook is asked about every request.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from api_server import json_patch, patch_conduct, statuses, typed_objects
from api_server.before_create import before_create
from api_server.errors import PatchWithoutObjectError, RejectedError, UndecodablePatchError, UnsupportedPatchTypeError
from api_server.outcomes import NotAdmittedError, Outcome, Record
from api_server.webhooks import call

if TYPE_CHECKING:
    from collections.abc import Callable

    from api_server.attributes import Attributes
    from api_server.errors import CallError
    from api_server.responses import Response
    from api_server.webhooks import Call, Webhook

Json = dict[str, Any]


def _new_uid() -> str:
    return str(uuid.uuid4())


def _as_it_is(obj: Json) -> Json:
    return obj


@dataclass(frozen=True, slots=True)
class ApiServer:
    """An API server with webhooks and nothing stored.

    Attributes:
        mutating: asked one after the other.
        validating: asked side by side.
        default: fills in defaults, before the first webhook and after each patch.
        new_uid: makes the uid of each call.
    """

    mutating: tuple[Webhook, ...] = ()
    validating: tuple[Webhook, ...] = ()
    default: Callable[[Json], Json] = _as_it_is
    new_uid: Callable[[], str] = _new_uid

    def admit(self, attributes: Attributes) -> Outcome:
        """Take a request through admission.

        Raises:
            ConductError: a webhook of ours sent what the API server would take and we promise not to send.
        """
        record = Record()
        if attributes.object is not None:
            attributes = replace(attributes, object=self.default(attributes.object))
        try:
            attributes = self._mutate(attributes, record)
            record.mutated = attributes.object
            attributes = before_create(attributes)
            self._validate(attributes, record)
        except NotAdmittedError as error:
            return record.outcome(None, error.status)
        return record.outcome(attributes.object)

    def _mutate(self, attributes: Attributes, record: Record) -> Attributes:
        """Ask the mutating webhooks, and once more those that ask for it when an object changed after them."""
        called: set[Webhook] = set()
        again: set[Webhook] = set()
        for round_ in (0, 1):
            for index, webhook in enumerate(self.mutating):
                if round_ and webhook not in again:
                    continue
                before = attributes.object
                attributes = self._mutated(webhook, attributes, record, (round_, index))
                if attributes.object != before:
                    again |= called
                    called = set()
                if webhook.reinvocation_policy == "IfNeeded":
                    called.add(webhook)
            if not again:
                break
        return attributes

    def _mutated(self, webhook: Webhook, attributes: Attributes, record: Record, place: tuple[int, int]) -> Attributes:
        _check_side_effects(webhook, attributes)
        found = call(webhook, attributes, self.new_uid(), place[0], mutating=True)
        record.calls.append(found)
        if found.response is None:
            _fail(webhook, found.error, record, ("mutation", *place))
            return attributes
        _note(webhook, found.response, record)
        try:
            patched = _patched(webhook, found.response, attributes)
        except (UndecodablePatchError, UnsupportedPatchTypeError) as error:
            record.calls[-1] = replace(found, response=None, error=error)
            _fail(webhook, error, record, ("mutation", *place))
            return attributes
        except RejectedError as error:
            raise NotAdmittedError(statuses.internal_error(str(error))) from error
        return attributes if patched is attributes.object else replace(attributes, object=self.default(patched or {}))

    def _validate(self, attributes: Attributes, record: Record) -> None:
        """Ask the validating webhooks; the first that refuses is what the user hears of."""

        def ask(webhook: Webhook) -> Call:
            return call(webhook, attributes, self.new_uid(), 0, mutating=False)

        for webhook in self.validating:
            _check_side_effects(webhook, attributes)
        if len(self.validating) > 1:
            with ThreadPoolExecutor(len(self.validating)) as side_by_side:
                calls = list(side_by_side.map(ask, self.validating))
        else:
            calls = [ask(webhook) for webhook in self.validating]
        record.calls.extend(calls)
        refused: list[NotAdmittedError] = []
        for index, (webhook, found) in enumerate(zip(self.validating, calls, strict=True)):
            try:
                if found.response is None:
                    _fail(webhook, found.error, record, ("validating", 0, index))
                else:
                    _note(webhook, found.response, record)
            except NotAdmittedError as error:
                refused.append(error)
        if refused:
            raise refused[0]


def _check_side_effects(webhook: Webhook, attributes: Attributes) -> None:
    if attributes.dry_run and webhook.side_effects not in {"None", "NoneOnDryRun"}:
        raise NotAdmittedError(
            statuses.bad_request(f'admission webhook "{webhook.name}" does not support dry run'),
        )


def _fail(webhook: Webhook, error: CallError | None, record: Record, place: tuple[str, int, int]) -> None:
    """Apply the failurePolicy to a call that failed."""
    if webhook.failure_policy == "Fail":
        raise NotAdmittedError(statuses.internal_error(f'failed calling webhook "{webhook.name}": {error}')) from error
    phase, round_, index = place
    record.failed_open.append(webhook.name)
    key = f"failed-open.{phase}.webhook.admission.k8s.io/round_{round_}_index_{index}"
    record.annotations.add_own(key, webhook.name)


def _note(webhook: Webhook, response: Response, record: Record) -> None:
    """Keep what a webhook says; a denial ends the request, whatever the failurePolicy."""
    for key, value in response.audit_annotations.items():
        record.annotations.add(webhook.name, key, value)
    for warning in response.warnings:
        record.warnings.add(warning)
    if not response.allowed:
        raise NotAdmittedError(statuses.denial(webhook.name, response.status))


def _patched(webhook: Webhook, response: Response, attributes: Attributes) -> Json | None:
    operations = json_patch.decode(response.patch) if response.patch else []
    if not operations:
        return attributes.object
    if attributes.object is None:
        raise PatchWithoutObjectError(
            f'admission webhook "{webhook.name}" attempted to modify the object, '
            "which is not supported for this operation"
        )
    if response.patch_type != "JSONPatch":
        raise UnsupportedPatchTypeError(f'unsupported patch type "{response.patch_type}"')
    if webhook.ours:
        patch_conduct.check(attributes.object, operations)
    patched: Json = json_patch.apply(attributes.object, operations)
    typed_objects.check(patched, attributes.endpoint)
    return patched
