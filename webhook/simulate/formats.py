"""A simulation as text, as Markdown for a pull request, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.webhook.audit import words as say
from gpugate.webhook.report.markdown import escaped
from gpugate.webhook.report.plain import plain, plain_json
from gpugate.webhook.simulate.model import SCHEMA, Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.simulate.model import Change, Coverage

FORMATS: Final = ("text", "markdown", "json")
# A comment of GitHub has at most 65,536 characters.
_MOST_ROWS: Final = 100


def render(name: str, simulation: Simulation, top: int) -> str:
    """Write a simulation in a format of `FORMATS`; `top` is the number of listed owners, 0 for all."""
    if name == "json":
        return plain_json(msgspec.json.format(msgspec.json.encode(simulation), indent=2).decode()) + "\n"
    lines = _markdown(simulation, top or _MOST_ROWS) if name == "markdown" else _text(simulation, top)
    return "".join(f"{line}\n" for line in lines)


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the JSON format."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **msgspec.json.schema(Simulation),
    }


def _text(simulation: Simulation, top: int) -> Iterator[str]:
    yield f"current    {plain(simulation.current)}"
    yield f"candidate  {plain(simulation.candidate)}"
    yield f"based on   {'; '.join(_basis(simulation.coverage))}"
    yield ""
    yield headline(simulation)
    listed = simulation.changes[: top or None]
    for change in listed:
        yield ""
        yield f"{plain(str(change.object))}: {transition(change)}"
        yield from (f"  {line}" for line in _details(change))
        for policy in change.policies:
            yield f"  [{policy.policy or 'malformed'}] {policy.current} -> {policy.candidate}: {plain(policy.message)}"
            if policy.hint:
                yield f"    fix: {plain(policy.hint)}"
    if len(simulation.changes) > len(listed):
        yield from ("", f"and {len(simulation.changes) - len(listed):,} more: --top 0")
    if simulation.nodes:
        yield from ("", "GPU PODS THAT DO NOT COME BACK IF THEIR NODE IS REMOVED")
    for risk in simulation.nodes[: top or None]:
        pool = f" (NodePool {plain(risk.node_pool)})" if risk.node_pool else ""
        names = ", ".join(plain(str(owner)) for owner in risk.owners[:3])
        more = f" and {len(risk.owners) - 3} more" if len(risk.owners) > 3 else ""
        yield f"  {plain(risk.node)}{pool}: {say.plural(risk.pods, 'Pod')} of {names}{more}"
    yield from _gaps(simulation)


def _gaps(simulation: Simulation) -> Iterator[str]:
    if simulation.coverage.not_evaluated:
        yield from ("", "NOT EVALUATED")
    for reason, requests in simulation.coverage.not_evaluated.items():
        yield f"  {say.plural(requests, 'request')}: {plain(reason)}"
    if simulation.remarks:
        yield ""
    yield from (plain(remark) for remark in simulation.remarks)


def headline(simulation: Simulation) -> str:
    """Return the result in one sentence."""
    denied, allowed = simulation.newly_denied, simulation.newly_allowed
    others = len(simulation.changes) - len(denied) - len(allowed)
    gpus = sum(change.gpus for change in denied)
    usd = sum(change.usd_per_hour or 0 for change in denied)
    cost = f" ({say.number(gpus)} GPUs, ${say.money(usd)} per hour)" if gpus else ""
    parts = [
        f"{say.plural(simulation.denied_owners, 'owner')} newly denied{cost}",
        *([f"{say.plural(len(allowed), 'owner')} no longer denied"] if allowed else []),
        *([f"{say.plural(others, 'owner')} with other changes"] if others else []),
    ]
    return ", ".join(parts)


def transition(change: Change) -> str:
    """Return what becomes of an owner."""
    if change.newly_denied:
        return f"newly denied ({change.current} -> deny)"
    if change.newly_allowed:
        return f"no longer denied (deny -> {change.candidate})"
    if change.current is change.candidate:
        return f"{change.candidate}, as before"
    return f"{change.current} -> {change.candidate}"


def _details(change: Change) -> Iterator[str]:
    requests = change.requests
    if requests.total:
        by = [
            *([f"{requests.people:,} by people"] if requests.people else []),
            *([f"{requests.controllers:,} by controllers"] if requests.controllers else []),
        ]
        when = f", {requests.first:%Y-%m-%d %H:%M} to {requests.last:%Y-%m-%d %H:%M}" if requests.first else ""
        yield f"{say.plural(requests.total, 'request')} ({', '.join(by)}; {', '.join(requests.operations)}{when})"
    if change.pods:
        price = f", ${say.money(change.usd_per_hour)} per hour" if change.usd_per_hour is not None else ""
        gpus = f", {say.number(change.gpus)} GPUs{price}" if change.gpus else ""
        yield f"{say.plural(change.pods, 'Pod')}{gpus}"


def _basis(coverage: Coverage) -> Iterator[str]:
    if coverage.requests:
        span = f" from {coverage.first:%Y-%m-%d %H:%M} to {coverage.last:%Y-%m-%d %H:%M}" if coverage.first else ""
        yield f"{coverage.evaluated:,} of {coverage.requests:,} recorded requests{span}"
    if coverage.stored:
        yield f"{coverage.stored:,} stored objects"
    if coverage.requests and coverage.cron_jobs:
        yield f"{coverage.cron_jobs_seen} of {coverage.cron_jobs} CronJobs ran in this time"


def _markdown(simulation: Simulation, top: int) -> Iterator[str]:
    yield from ("## gpugate simulate", "")
    yield from (f"**{escaped(headline(simulation))}**", "")
    yield f"Candidate {escaped(simulation.candidate)}, current {escaped(simulation.current)}."
    yield f"Based on {escaped('; '.join(_basis(simulation.coverage)))}."
    if simulation.changes:
        yield from ("", "| owner | result | policies | requests | GPUs | $/hour |", "|---|---|---|---:|---:|---:|")
    for change in simulation.changes[:top]:
        yield _row(change)
    if len(simulation.changes) > top:
        yield from ("", f"and {len(simulation.changes) - top:,} more")
    if simulation.nodes:
        yield ""
    yield from (f"- {escaped(risk)}" for risk in _risks(simulation))
    if simulation.coverage.not_evaluated:
        yield ""
    for reason, requests in simulation.coverage.not_evaluated.items():
        yield f"- {say.plural(requests, 'request')} not evaluated: {escaped(reason)}"


def _row(change: Change) -> str:
    policies = ", ".join(f"`{policy.policy}`" for policy in change.policies)
    price = say.money(change.usd_per_hour) if change.usd_per_hour is not None else ""
    cells: Sequence[str] = (
        escaped(str(change.object)),
        transition(change).replace("->", "to"),
        policies,
        f"{change.requests.total:,}" if change.requests.total else "",
        say.number(change.gpus) if change.gpus else "",
        price,
    )
    return "| " + " | ".join(cells) + " |"


def _risks(simulation: Simulation) -> Iterator[str]:
    for risk in simulation.nodes[:10]:
        yield f"node {risk.node}: {say.plural(risk.pods, 'GPU Pod')} would not come back after its removal"
