"""`gpugate review`: show what admission would do with one object."""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import Operation, Request
from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.cli.identity import add_identity, cluster_of
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.manifests.documents import Document, read_bytes
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.manifests.within import refuse_link

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.policies.engine.verdict import Verdict


class UnreadableError(GpugateError):
    """The object cannot be read; the message has the location and the fix."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The request as described by flags; an AdmissionReview contains all of it."""

    operation: Operation | None = None
    old: Path | None = None
    user: str = ""
    groups: tuple[str, ...] = ()
    namespace: str | None = None


def request(name: str, flags: Asked) -> Request:
    """Read an object or an AdmissionReview; objects get the defaults of the API server.

    Raises:
        UnreadableError: the file contains neither.
        UsageError: the flags contradict the file or each other.
    """
    document = _document(name)
    value: Any = document.value
    if isinstance(value, dict) and value.get("kind") == "AdmissionReview":
        if flags != Asked():
            raise UsageError("an AdmissionReview contains operation, old object, user and namespace: remove the flags")
        return _decoded(name, value)
    recorded = _object(document, flags.namespace or "default")
    evaluated = replace(recorded, user=flags.user, groups=flags.groups)
    operation = flags.operation or (Operation.UPDATE if flags.old else Operation.CREATE)
    if (operation is Operation.UPDATE) is not (flags.old is not None):
        raise UsageError("an UPDATE needs --old FILE, and other operations do not accept it")
    if operation is Operation.DELETE:
        evaluated = replace(evaluated, operation=operation, object=None, old_object=recorded.object)
    elif flags.old is not None:
        old = _object(_document(str(flags.old)), flags.namespace or "default")
        evaluated = replace(evaluated, operation=operation, old_object=old.object)
    return with_defaults(evaluated)


def _document(name: str) -> Document:
    file = Input(name, explicit=True)
    refuse_link(Path(name), "the file")
    data = file.read()
    parts = [data] if isinstance(data, Problem) else list(read_bytes(file.label, data))
    documents = [part for part in parts if isinstance(part, Document)]
    for part in parts:
        if isinstance(part, Problem) and not part.warning:
            raise _unreadable(part)
    if len(documents) != 1:
        raise UnreadableError(
            f"{file.label}: contains {len(documents)} documents: review accepts one, check accepts many"
        )
    return documents[0]


def _object(document: Document, namespace: str) -> Request:
    parts = list(objects(document, namespace=namespace))
    for part in parts:
        if isinstance(part, Problem):
            raise _unreadable(part)
    manifests = [part for part in parts if isinstance(part, Manifest)]
    if len(manifests) != 1:
        raise UnreadableError(
            f"{document.source}: contains {len(manifests)} objects: review accepts one, check accepts many"
        )
    return manifests[0].request


def _decoded(name: str, value: Any) -> Request:
    from gpugate.webhook.admission.review import ReviewError, decode  # noqa: PLC0415 -- imports pydantic

    try:
        return decode(msgspec.json.encode(value)).request
    except ReviewError as error:
        raise UnreadableError(f"{name}: {error.message}") from None


def _unreadable(problem: Problem) -> UnreadableError:
    where = f"{problem.source}:{problem.line}:{problem.column}" if problem.line else problem.source
    return UnreadableError(f"{where}: {problem.message}: {problem.remedy}")


_INCOMPLETE = 4


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args, project = project_flags.parse(parser(), "review", arguments)
    ruleset, catalog = options.bound(
        args.policy_file, project.own, overrides=options.Overrides(cluster=cluster_of(args))
    )
    for remark in (*project.remarks, *catalog.remarks):
        print(f"warning: {remark}", file=sys.stderr)
    requested = Asked(args.operation, args.old, args.user or "", tuple(args.groups), args.namespace)
    try:
        review_request = request(args.file, requested)
    except UnreadableError as error:
        print(f"error: {error}", file=sys.stderr)
        return _INCOMPLETE
    today = dt.datetime.now(dt.UTC).date()
    verdict = evaluate(
        ruleset, review_request, NoFacts(), today=today, phase=Phase.BOTH, template_ceiling=Stance.ENFORCE
    )
    sys.stdout.write(_written(verdict, args.output))
    return _exit_code(verdict)


def _written(verdict: Verdict, output: str) -> str:
    if output == "json":
        from gpugate.webhook.admission import review_formats  # noqa: PLC0415 -- only the format that is asked for

        return review_formats.write_json(verdict)
    from gpugate.webhook.admission import review_formats  # noqa: PLC0415 -- only the format that is asked for

    return review_formats.write_text(verdict)


def _exit_code(verdict: Verdict) -> int:
    if verdict.is_malformed or any(finding.stance is Stance.ENFORCE for finding in verdict.findings):
        return 1
    return _INCOMPLETE if any(outcome.error for outcome in verdict.outcomes) else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate review",
        description="Show what admission would do with one object: decision, patch, the object as stored, warnings.",
        epilog="examples:\n  gpugate review pod.yaml\n  gpugate review pool.yaml --old pool-before.yaml --as alice",
    )
    add = command.add_argument
    add("file", metavar="FILE", help="an object or an AdmissionReview, YAML or JSON; - for standard input")
    add(
        "--operation",
        type=Operation,
        choices=list(Operation)[:3],
        help="operation of the request (default: CREATE, or UPDATE with --old)",
    )
    add("--old", type=Path, metavar="FILE", help="the object before an UPDATE")
    add("--as", dest="user", metavar="USER", help="user of the request")
    add("--as-group", dest="groups", action="append", default=[], metavar="GROUP", help="group of the user; repeatable")
    add("-n", "--namespace", help="namespace of an object without one (default: default)")
    add("-o", "--output", choices=("text", "json"), default="text", help="output format (default: text)")
    options.add_policy_file(command, options.OF_THE_PROJECT)
    add_identity(command)
    project_flags.add_own_policies(command)
    project_flags.add(command)
    return command
