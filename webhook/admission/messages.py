"""What the person at the keyboard reads: the message of a denial, and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.admission.wording import brief, plain, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.engine.verdict import Verdict

# In bytes; nobody reads more of a denial, and it is written into events and logs.
LONGEST_MESSAGE: Final = 1024
# Advice of `k8s.io/api` admission/v1 types.go (v0.36): longer ones may be cut by the API server.
LONGEST_WARNING: Final = 120
MOST_WARNINGS: Final = 20


def denial(verdict: Verdict) -> str:
    """Write every denial of a verdict with what to do instead, one line each, in 1 KiB."""
    lines = list(_reasons(verdict))
    shown: list[str] = []
    room = LONGEST_MESSAGE - len("\nand 1000000 more")
    for line in lines:
        text = within(plain(line[:LONGEST_MESSAGE]), LONGEST_MESSAGE)
        # The first is always shown, and room is left to say that others are not.
        if shown and len(text.encode()) > room:
            shown.append(f"and {len(lines) - len(shown)} more")
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
    lines = (*verdict.denials, *verdict.warnings) if and_denials else verdict.warnings
    # Where there is no room for both, what was found tells more than where.
    shorter = {f.line: f"[{f.policy}] {f.message}" for f in verdict.findings if len(f.line) > LONGEST_WARNING}
    told = list(dict.fromkeys(brief(shorter.get(line, line), LONGEST_WARNING) for line in lines))
    if len(told) > MOST_WARNINGS:
        told[MOST_WARNINGS - 1 :] = [f"and {len(told) - MOST_WARNINGS + 1} more warnings"]
    return told


def _reasons(verdict: Verdict) -> Iterator[str]:
    hints = {f.line: f.hint for f in verdict.findings if f.stance is Stance.ENFORCE and f.hint}
    for line in verdict.denials:
        yield f"{line}; {hints[line]}" if line in hints else line
