"""What the style sheet calls what would become of an object, and the words beside it."""

from __future__ import annotations

from typing import Final

from gpugate.webhook.report.audited import Action

CLASSES: Final = {
    Action.BLOCK: "block",
    Action.MUTATE: "mutate",
    Action.WARN: "warn",
    Action.RECORD: "record",
    Action.COMPLY: "comply",
}
# One letter for each, because there are as many as objects.
MARKS: Final = {Action.BLOCK: "b", Action.MUTATE: "m", Action.WARN: "w", Action.RECORD: "r", Action.COMPLY: "c"}
VERBS: Final = {
    Action.BLOCK: "denied",
    Action.MUTATE: "changed",
    Action.WARN: "warned of",
    Action.RECORD: "recorded",
    Action.COMPLY: "compliant",
}
