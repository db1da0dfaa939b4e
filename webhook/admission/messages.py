"""What the person at the keyboard reads: the message of a denial, and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.verdict import Finding, line_of
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.admission.wording import brief, plain, within

if TYPE_CHECKING:
    from gpugate.policies.engine.verdict import Outcome, Verdict
    from gpugate.policies.sdk.findings import Violation

# In bytes; nobody reads more of a denial, and it is written into events and logs.
LONGEST_MESSAGE: Final = 1024
# Advice of `k8s.io/api` admission/v1 types.go (v0.36): longer ones may be cut by the API server.
LONGEST_WARNING: Final = 120
MOST_WARNINGS: Final = 20
# Of so many warnings each is written, to show each once; of more the rest is only counted.
_MOST_COMPARED: Final = 1000


def denial(verdict: Verdict) -> str:
    """Write every denial of a verdict with what to do instead, one line each, in 1 KiB."""
    reasons = verdict.reasons(Stance.ENFORCE)
    shown: list[str] = []
    room = LONGEST_MESSAGE - len("\nand 1000000 more")
    for reason in reasons:
        text = within(plain(_with_hint(reason)[:LONGEST_MESSAGE]), LONGEST_MESSAGE)
        # The first is always shown, and room is left to say that others are not.
        if shown and len(text.encode()) > room:
            shown.append(f"and {len(reasons) - len(shown)} more")
            break
        shown.append(within(text, room))
        room -= len(shown[-1].encode()) + 1
    return "\n".join(shown)


def warnings(verdict: Verdict, *, and_denials: bool) -> list[str]:
    """Write the warnings of a verdict, each once, at most 20 of at most 120 characters.

    Args:
        verdict: what was found.
        and_denials: tell what the request would be refused for too, because the answer cannot refuse it.
    """
    reasons = verdict.reasons(Stance.WARN)
    if and_denials:
        reasons = verdict.reasons(Stance.ENFORCE) + reasons
    told = list(dict.fromkeys(brief(_warning(reason), LONGEST_WARNING) for reason in reasons[:_MOST_COMPARED]))
    unseen = max(0, len(reasons) - _MOST_COMPARED)
    if len(told) + unseen > MOST_WARNINGS:
        told[MOST_WARNINGS - 1 :] = [f"and {len(told) + unseen - MOST_WARNINGS + 1} more warnings"]
    return told


def _warning(reason: Violation | Finding | Outcome) -> str:
    line = line_of(reason)
    # Where there is no room for both, what was found tells more than where.
    if isinstance(reason, Finding) and len(line) > LONGEST_WARNING:
        return f"[{reason.policy}] {reason.message}"
    return line


def _with_hint(reason: Violation | Finding | Outcome) -> str:
    line = line_of(reason)
    return f"{line}; {reason.hint}" if isinstance(reason, Finding) and reason.hint else line
