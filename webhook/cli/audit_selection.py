"""Reads which objects `gpugate audit` reports on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, near_misses
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.audit.selection import Selection, parse_selector
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cluster.discovery import resource_name
from gpugate.webhook.generate.audited_resources import audited_resources

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping


def selection(args: argparse.Namespace) -> Selection:
    """Return what was asked for.

    Raises:
        GpugateError: two flags contradict each other; a kind is misspelt; the selector is none.
    """
    if args.all_namespaces and args.namespace:
        raise UsageError("-A and -n contradict each other: leave one of them out")
    known = dict(_spellings())
    return Selection(
        namespaces=frozenset(args.namespace),
        excluded=frozenset(args.exclude_namespace),
        kinds=frozenset(_kinds("--include", args.include, known)),
        without=frozenset(_kinds("--exclude", args.exclude, known)),
        labels=parse_selector(args.selector) if args.selector else None,
    )


def _spellings() -> Iterator[tuple[str, str]]:
    """Yield every way in which a kind may be written in small letters, and the kind."""
    for resource in audited_resources(bind(CATALOG, PolicyConfig())):
        kind = resource.kind
        for spelling in (kind.name, kind.plural, resource_name(kind)):
            yield spelling.lower(), kind.name


def _kinds(flag: str, values: Iterable[str], known: Mapping[str, str]) -> Iterator[str]:
    """Yield kinds; one that no policy is about may have made Pods all the same."""
    for name in (part.strip() for value in values for part in value.split(",")):
        near = () if name.lower() in known else near_misses(name.lower(), list(known))
        if near:
            raise UsageError(f"{flag} {name}: no such kind is known; did you mean {known[near[0]]}?")
        yield known.get(name.lower(), name)
