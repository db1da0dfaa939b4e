"""Admits a request as kube-apiserver does: mutating webhooks, then what it fills in itself, then validating webhooks.

Source: `k8s.io/apiserver` pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go, v1.36. Selectors, rules, match
conditions and failure policies are not here: every webhook is asked about every request, and a call that fails, fails the test.
The end-to-end tests have the real API server.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jsonpatch
from api_server import patch_conduct, typed_objects
from api_server.before_create import before_create
from api_server.errors import CallError
from api_server.outcomes import DeniedError, Outcome, Record, denial
from api_server.webhooks import call

if TYPE_CHECKING:
    from collections.abc import Callable

    from api_server.attributes import Attributes
    from api_server.responses import Response
    from api_server.webhooks import Webhook

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
        validating: asked about what mutation made of the object.
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
            CallError: the API server would not use the answer of a webhook.
            ConductError: a webhook of ours sent what the API server would take and we promise not to send.
        """
        record = Record()
        if attributes.object is not None:
            attributes = replace(attributes, object=self.default(attributes.object))
        try:
            attributes = self._mutate(attributes, record)
            record.mutated = attributes.object
            attributes = before_create(attributes)
            for webhook in self.validating:
                self._ask(webhook, attributes, record, mutating=False)
        except DeniedError as error:
            return record.outcome(error.status)
        return record.outcome()

    def _mutate(self, attributes: Attributes, record: Record) -> Attributes:
        """Ask the mutating webhooks, and once more those that ask for it when an object changed after them."""
        called: set[Webhook] = set()
        again: set[Webhook] = set()
        for round_ in (0, 1):
            for webhook in self.mutating:
                if round_ and webhook not in again:
                    continue
                before = attributes.object
                response = self._ask(webhook, attributes, record, mutating=True)
                patched = _patched(webhook, response, attributes)
                if patched is not None:
                    attributes = replace(attributes, object=self.default(patched))
                if attributes.object != before:
                    again |= called
                    called = set()
                if webhook.reinvocation_policy == "IfNeeded":
                    called.add(webhook)
            if not again:
                break
        return attributes

    def _ask(self, webhook: Webhook, attributes: Attributes, record: Record, *, mutating: bool) -> Response:
        """Call a webhook and keep what it says; a denial ends the request."""
        found = call(webhook, attributes, self.new_uid(), mutating=mutating)
        record.calls.append(found)
        for key, value in found.response.audit_annotations.items():
            record.annotations.add(webhook.name, key, value)
        for warning in found.response.warnings:
            record.warnings.add(warning)
        if not found.response.allowed:
            raise DeniedError(denial(webhook.name, found.response.status))
        return found.response


def _patched(webhook: Webhook, response: Response, attributes: Attributes) -> Json | None:
    """Return the object that a patch makes; None where there is no patch."""
    operations = json.loads(response.patch or b"[]")
    if not operations:
        return None
    if attributes.object is None:
        raise CallError(f"{webhook.name} sent a patch where there is no object")
    if webhook.ours:
        patch_conduct.check(attributes.object, operations)
    patched: Json = jsonpatch.apply_patch(attributes.object, operations)
    typed_objects.check(patched, attributes.endpoint)
    return patched
