"""A simulation as text, as Markdown for a pull request, as JSON, and as an HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.webhook.audit import words as say
from gpugate.webhook.report.markdown import escaped
from gpugate.webhook.report.plain import plain, plain_json
from gpugate.webhook.simulate import page, phrases
from gpugate.webhook.simulate.model import SCHEMA, Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.simulate.model import Change, PolicyTotals

FORMATS: Final = ("text", "markdown", "json", "html")
# A comment of GitHub has at most 65,536 characters.
_MOST_ROWS: Final = 100
_MOST_LINES: Final = 10


def render(name: str, simulation: Simulation, top: int) -> str:
    """Write a simulation in a format of `FORMATS`; `top` is the number of listed owners, 0 for all."""
    if name == "json":
        return plain_json(msgspec.json.format(msgspec.json.encode(simulation), indent=2).decode()) + "\n"
    if name == "html":
        return page.render(simulation)
    lines = _markdown(simulation, min(top or _MOST_ROWS, _MOST_ROWS)) if name == "markdown" else _text(simulation, top)
    return "".join(f"{line}\n" for line in lines)


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the JSON format."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(Simulation),
    }


def _text(simulation: Simulation, top: int) -> Iterator[str]:
    yield f"current     {plain(simulation.current)}"
    yield f"candidate   {plain(simulation.candidate)}"
    yield f"based on    {plain('; '.join(phrases.basis(simulation.coverage)))}"
    confidence = simulation.confidence
    yield f"confidence  {confidence.level}"
    yield from (f"  {plain(reason)}" for reason in confidence.reasons)
    yield ""
    yield phrases.headline(simulation)
    sent = phrases.requests(simulation)
    if sent:
        yield sent
    if len(simulation.policies) > 1:
        yield from _section("POLICIES", [_policy_text(policy) for policy in simulation.policies], top)
    listed = simulation.changes[: top or None]
    for change in listed:
        yield ""
        yield f"{plain(str(change.object))}: {phrases.transition(change)}"
        yield from (f"  {line}" for line in phrases.details(change))
        for policy in change.policies:
            yield f"  [{policy.policy or 'malformed'}] {policy.current} -> {policy.candidate}: {plain(policy.message)}"
            if policy.hint:
                yield f"    fix: {plain(policy.hint)}"
    if len(simulation.changes) > len(listed):
        yield from ("", f"and {len(simulation.changes) - len(listed):,} more: --top 0")
    pools = [phrases.pool(risk, simulation) for risk in simulation.pools]
    nodes = [f"node {phrases.node(risk)}" for risk in simulation.nodes]
    yield from _section(phrases.LOST.upper(), pools, 0)
    yield from _listed(nodes, top)
    yield from [f"  {phrases.UNPLANNED}"] if nodes else ()
    yield from _section(phrases.runs_title(simulation).upper(), [*map(phrases.runs, simulation.runs)], top)
    yield from _section(phrases.SCALE_UPS.upper(), [*map(phrases.scale_up, simulation.scale_ups)], top)
    yield from _section(phrases.EXEMPTIONS.upper(), [*map(phrases.exemption, simulation.exemptions)], top)
    yield from _section("NOT EVALUATED", list(_gaps(simulation)), 0)
    yield from _section("NOT IN THE RECORDED TIME", list(phrases.unseen(simulation.coverage)), 0)
    if simulation.remarks:
        yield ""
    yield from (plain(remark) for remark in simulation.remarks)


def _section(title: str, lines: Sequence[str], top: int) -> Iterator[str]:
    if lines:
        yield from ("", title)
    yield from _listed(lines, top)


def _listed(lines: Sequence[str], top: int) -> Iterator[str]:
    listed = lines[: top or None]
    yield from (f"  {plain(line)}" for line in listed)
    if len(lines) > len(listed):
        yield f"  and {len(lines) - len(listed):,} more: --top 0"


def _gaps(simulation: Simulation) -> Iterator[str]:
    for reason, requests in simulation.coverage.not_evaluated.items():
        yield f"{say.plural(requests, 'request')}: {reason}"
    yield from map(phrases.gap, simulation.gaps)


def _policy_text(policy: PolicyTotals) -> str:
    denied = policy.denied
    sent = denied.people + denied.controllers
    parts = [
        f"{say.plural(denied.owners, 'owner')} newly denied",
        *([say.plural(sent, "request")] if sent else []),
        *([phrases.amount(denied.gpus, denied.usd_per_hour)] if denied.gpus else []),
        *([f"{policy.allowed:,} no longer denied"] if policy.allowed else []),
        *([f"{policy.others:,} with other changes"] if policy.others else []),
    ]
    return f"{policy.policy or 'malformed'}: {', '.join(parts)}"


def _markdown(simulation: Simulation, top: int) -> Iterator[str]:
    yield from ("## gpugate simulate", "")
    yield from (f"**{escaped(phrases.headline(simulation))}**", "")
    yield f"Candidate {escaped(simulation.candidate)}, current {escaped(simulation.current)}."
    yield f"Based on {escaped('; '.join(phrases.basis(simulation.coverage)))}."
    sent = phrases.requests(simulation)
    if sent:
        yield f"Of the newly denied owners: {escaped(sent)}."
    confidence = simulation.confidence
    reasons = f": {escaped('; '.join(confidence.reasons))}" if confidence.reasons else ""
    yield f"Confidence: {confidence.level}{reasons}."
    if simulation.policies:
        yield from (
            "",
            "| policy | newly denied | no longer denied | other changes | requests | GPUs | $/hour |",
            "|---|---:|---:|---:|---:|---:|---:|",
        )
    yield from map(_policy_row, simulation.policies)
    if simulation.changes:
        yield from ("", "| owner | result | policies | requests | GPUs | $/hour |", "|---|---|---|---:|---:|---:|")
    yield from map(_row, simulation.changes[:top])
    if len(simulation.changes) > top:
        yield from ("", f"and {len(simulation.changes) - top:,} more")
    yield from _bullets(phrases.LOST, [phrases.pool(risk, simulation) for risk in simulation.pools])
    yield from _bullets(phrases.runs_title(simulation), [*map(phrases.runs, simulation.runs)])
    yield from _bullets(phrases.SCALE_UPS, [*map(phrases.scale_up, simulation.scale_ups)])
    yield from _bullets(phrases.EXEMPTIONS, [*map(phrases.exemption, simulation.exemptions)])
    yield from _bullets("Not evaluated", list(_gaps(simulation)))
    yield from _bullets("Not in the recorded time", list(phrases.unseen(simulation.coverage)))
    yield from _bullets("Notes", simulation.remarks)


def _bullets(title: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield a list that is closed at first, because a comment is read on its first screen."""
    if not lines:
        return
    yield from ("", f"<details><summary>{title}: {len(lines):,}</summary>", "")
    yield from (f"- {escaped(line)}" for line in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f"- and {len(lines) - _MOST_LINES:,} more"
    yield from ("", "</details>")


def _policy_row(policy: PolicyTotals) -> str:
    denied = policy.denied
    counts = (denied.owners, policy.allowed, policy.others, denied.people + denied.controllers)
    cells = (
        f"`{policy.policy}`" if policy.policy else "malformed",
        *(f"{count:,}" if count else "" for count in counts),
        *_amounts(denied.gpus, denied.usd_per_hour),
    )
    return f"| {' | '.join(cells)} |"


def _row(change: Change) -> str:
    cells: Sequence[str] = (
        escaped(str(change.object)),
        phrases.transition(change).replace("->", "to"),
        ", ".join(f"`{policy.policy}`" if policy.policy else "malformed" for policy in change.policies),
        f"{change.requests.total:,}" if change.requests.total else "",
        *_amounts(change.gpus, change.usd_per_hour),
    )
    return f"| {' | '.join(cells)} |"


def _amounts(gpus: float, usd_per_hour: float | None) -> tuple[str, str]:
    return say.number(gpus) if gpus else "", say.money(usd_per_hour) if usd_per_hour is not None else ""
