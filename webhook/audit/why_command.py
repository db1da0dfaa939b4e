"""`gpugate why`: show for each NodePool whether Karpenter can launch a node for a Pod, and the first term that fails."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from gpugate.policies.engine.ruleset import bind
from gpugate.policies.pods import unprovisionable
from gpugate.policies.sdk.facts import Known
from gpugate.policies.sdk.field import Field, UnknownValueError
from gpugate.policies.sdk.launch_failures import quantity_text, results
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES
from gpugate.policies.sdk.node_types import NODE_TYPE_NEEDS
from gpugate.policies.sdk.objects import NODE_POOL, POD, Operation, Request, Wrapper
from gpugate.policies.sdk.pod_requests import Demand, demand
from gpugate.policies.sdk.policy import Context, Params, policy_in
from gpugate.policies.sdk.provisioning import PROVISIONING_NEEDS
from gpugate.policies.sdk.structs import Struct
from gpugate.policies.sdk.volumes import VOLUME_NEEDS, required_by_volumes
from gpugate.webhook.audit import why_json
from gpugate.webhook.audit.dump import DumpSource
from gpugate.webhook.audit.live import LiveSource, Throttle
from gpugate.webhook.audit.source import NotReadError
from gpugate.webhook.audit.why_json import PodAnswer, PoolAnswer, WhyReport
from gpugate.webhook.cli import options
from gpugate.webhook.cli.identity import add_identity, cluster_of
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.credentials import context_name
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.cluster.options import choose_cluster
from gpugate.webhook.manifests.catalogue_file import read_catalogue, with_catalogue
from gpugate.webhook.manifests.load import RunFacts, load
from gpugate.webhook.manifests.policy_file import load_policy_file
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.launch_failures import Result
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.webhook.audit.source import Source

_LOOKED_UP: Final = tuple(need.kind for need in (*PROVISIONING_NEEDS, *VOLUME_NEEDS))
_QPS: Final = 50.0
_BURST: Final = 100
_NONE_CAN: Final = 1
_NOTHING: Final = 3
_INCOMPLETE: Final = 4


class Pod(Struct, frozen=True):
    """A Pod, or a Pod template of a workload; `name` is how people refer to it."""

    name: str
    field: Field
    request: Request
    wrapper: Wrapper | None = None


class Answer(Struct, frozen=True):
    """What each pool can do for a Pod, and what the Pod requests."""

    pod: Pod
    wanted: Demand
    pools: tuple[Result, ...]

    @property
    def possible(self) -> bool:
        """Whether any pool can launch a node for it, or may."""
        return any(result.failure is None for result in self.pools)


class _UnreadableError(Exception):
    """An input cannot be read; the message says what to do."""


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    ruleset = _ruleset(args)
    try:
        pods, facts = _read(args, ruleset)
    except (_UnreadableError, CallError) as error:
        print(f"error: {plain(str(error))}", file=sys.stderr)
        return _INCOMPLETE
    pools = facts.list(NODE_POOL)
    if not pods or not (isinstance(pools, Known) and pools.items):
        missing = "Pods or Pod templates in the input" if not pods else "NodePools: add them with --from PATH"
        print(f"error: no {missing}", file=sys.stderr)
        return _NOTHING
    try:
        answers = [_answer(pod, facts, ruleset, ignores_claims=_ignores_claims(ruleset, args)) for pod in pods]
    except UnknownValueError as unknown:
        print(f"error: the value of placeholder {plain(unknown.text)} is unknown: render it first", file=sys.stderr)
        return _INCOMPLETE
    sys.stdout.write(why_json.render(report(answers)) if args.output == "json" else write_text(answers))
    return 0 if all(answer.possible for answer in answers) else _NONE_CAN


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    parser = Parser(
        prog="gpugate why",
        description="Show for each NodePool whether Karpenter can launch a node for a Pod, and otherwise the first term "
        "that fails. Existing nodes are not compared. Changes nothing.",
        epilog="examples:\n  gpugate why pod/train -n ml\n  gpugate why train.yaml --from nodepools/\n"
        "  gpugate why pod/train -n ml --from dump.json\n\n"
        "Exit codes: 0 a NodePool can launch a node for each Pod, or may; 1 none can for\n"
        "one of them; 2 wrong usage; 3 no Pods or no NodePools; 4 an input could not be\nread.",
    )
    parser.add_argument("pod", metavar="POD", help="file with Pods or workloads, or pod/NAME; - for standard input")
    options.add_cluster(parser, os.environ)
    add = parser.add_argument
    options.add_dump(parser, "read NodePools and other objects from files or a dump instead of a cluster")
    add("-n", "--namespace", default="default", help="namespace of pod/NAME (default: default)")
    add("--dra", action="store_true", help="Karpenter runs with --ignore-dra-requests=false")
    options.add_policy_file(parser)
    add_identity(parser)
    options.add_catalogue(parser)
    add("-o", "--output", choices=("text", "json"), default="text", help="output format (default: text)")
    return parser


def _ruleset(args: argparse.Namespace) -> Ruleset:
    """Return the policy that reports such Pods, as the policy file configures it, with the platform that the file describes.

    Raises:
        GpugateError: the policy file or the catalogue cannot be read or is invalid; the text contains the location.
    """
    types = None if args.catalogue is None else read_catalogue(args.catalogue)

    def use(config: PolicyConfig) -> Ruleset:
        own = config if types is None else with_catalogue(config, types)
        return bind((policy_in(unprovisionable),), own, closed_families=())

    return load_policy_file(args.policy_file, use, cluster=cluster_of(args))


def _ignores_claims(ruleset: Ruleset, args: argparse.Namespace) -> bool:
    """Tell whether Karpenter ignores Pods with claims, by the flag, or else by the parameters of the policy."""
    params = next((rule.params for rule in ruleset.rules), None)
    configured = params.ignore_dra_requests if isinstance(params, unprovisionable.Params) else True
    return configured and not args.dra


def _read(args: argparse.Namespace, ruleset: Ruleset) -> tuple[list[Pod], RunFacts]:
    """Return the Pods, and everything that is known of the cluster.

    Raises:
        UsageError: flags contradict each other, or a path does not exist.
        CallError: the cluster cannot be reached.
        _UnreadableError: an input cannot be read.
    """
    prefix, slash, name = args.pod.partition("/")
    is_name = bool(slash) and prefix in {"pod", "pods", "po"} and not os.path.exists(args.pod)  # noqa: PTH110 -- any text
    requests: list[Request] = []
    if not is_name:
        loaded = load([args.pod], namespace=args.namespace)
        for problem in loaded.problems:
            if not problem.warning:
                where = f"{problem.source}:{problem.line}" if problem.line else problem.source
                raise _UnreadableError(f"{where}: {problem.message}: {problem.remedy}")
        requests = [manifest.request for manifest in loaded.manifests]
    own = any(NODE_POOL.covers(request.kind) for request in requests)
    known = list(requests)
    if args.dump or is_name or not own:
        source = _source(args)
        of_nodes = NODE_TYPE_NEEDS if ruleset.config.platform.catalogue.from_nodes else ()
        for kind in dict.fromkeys((*_LOOKED_UP, *(need.kind for need in of_nodes))):
            known += _objects(source, kind)
        if is_name:
            requests = [_named(source, args.namespace, name)]
    pods = [pod for request in requests for pod in _pods(request)]
    return pods, RunFacts(known, complete=True)


def _source(args: argparse.Namespace) -> Source:
    if args.dump:
        if args.kubeconfig or args.context:
            raise UsageError("--from selects files, --kubeconfig and --context a cluster: remove one of them")
        for path in args.dump:
            if path != "-" and not os.path.exists(path):  # noqa: PTH110 -- a name that no path can have is no error here
                raise UsageError(f"--from {path}: no such file or directory")
        return DumpSource(args.dump)
    cluster = choose_cluster(args.kubeconfig, args.context, os.environ, "read NodePools from files with --from PATH")
    connection = connect(cluster)
    return LiveSource(connection, context_name(cluster) or connection.host, Throttle(_QPS, _BURST))


def _objects(source: Source, kind: Kind) -> Iterator[Request]:
    """Yield the objects of a kind; none where it is not served or not dumped.

    Raises:
        _UnreadableError: NodePools cannot be read.
    """
    try:
        for stored in source.read(kind):
            namespace = str((stored.object.get("metadata") or {}).get("namespace") or "")
            yield Request(stored.kind, Operation.CREATE, stored.object, namespace=namespace)
    except NotReadError as error:
        # Without the other kinds more pools seem possible, and none seems impossible.
        if kind is NODE_POOL and not error.absent:
            raise _UnreadableError(str(error)) from None


def _named(source: Source, namespace: str, name: str) -> Request:
    try:
        if isinstance(source, DumpSource):
            stored_pod = next(
                (stored for stored in source.read(POD) if _is_named(stored.object, namespace, name)), None
            )
        else:
            stored_pod = source.fetch(POD, namespace, name)
    except NotReadError as error:
        raise _UnreadableError(str(error)) from None
    if stored_pod is None:
        raise _UnreadableError(f"Pod {namespace}/{name} does not exist: set its namespace with -n")
    return Request(stored_pod.kind, Operation.CREATE, stored_pod.object, name=name, namespace=namespace)


def _is_named(obj: Mapping[str, Any], namespace: str, name: str) -> bool:
    metadata = obj.get("metadata") or {}
    return metadata.get("name") == name and (metadata.get("namespace") or "default") == namespace


def _pods(request: Request) -> Iterator[Pod]:
    root = Field(request.object)
    name = request.name or root["metadata", "generateName"].text
    title = f"{request.kind.kind} {request.namespace}/{name}" if request.namespace else f"{request.kind.kind} {name}"
    if POD.covers(request.kind):
        yield Pod(title, root, request)
        return
    wrapper = Wrapper(request.kind, root)
    templates = list(wrapper.templates)
    for template in templates if request.kind.kind != "DaemonSet" else ():
        within = f", {'.'.join(map(str, template.path))}" if len(templates) > 1 else ""
        yield Pod(title + within, template, request, wrapper)


def _answer(pod: Pod, facts: RunFacts, ruleset: Ruleset, *, ignores_claims: bool) -> Answer:
    config, tables = ruleset.config, {INSTANCE_TYPES.name: INSTANCE_TYPES.load()}
    ctx: AnyContext = Context(
        Params(), pod.field, pod.wrapper, pod.request, facts, config.platform, config.target, tables
    )
    wanted = msgspec.structs.replace(demand(pod.field, ctx), volumes=required_by_volumes(pod.field, ctx))
    return Answer(pod, wanted, results(wanted, ctx, ignores_claims=ignores_claims, used=True))


def report(answers: Sequence[Answer]) -> WhyReport:
    """Return the records of answers."""
    return WhyReport(tuple(_described(answer) for answer in answers))


def _described(answer: Answer) -> PodAnswer:
    requests = {name: quantity_text(name, amount) for name, amount in sorted(answer.wanted.requests.items())}
    pools = (
        PoolAnswer(
            name=result.pool,
            launchable=_word(result),
            instance_types=result.types,
            term=result.failure.term if result.failure else "",
            reason=result.failure.text if result.failure else result.doubt,
            change=result.failure.change if result.failure else "",
        )
        for result in answer.pools
    )
    return PodAnswer(answer.pod.name, answer.possible, requests, tuple(pools))


def _word(result: Result) -> Literal["yes", "maybe", "no"]:
    if result.failure:
        return "no"
    return "maybe" if result.doubt else "yes"


def write_text(answers: Sequence[Answer]) -> str:
    """Write answers as tables, one for each Pod."""
    return "\n".join("".join(f"{plain(line)}\n" for line in _lines(answer)) for answer in answers)


def _lines(answer: Answer) -> Iterator[str]:
    amounts = (f"{quantity_text(name, amount)} {name}" for name, amount in sorted(answer.wanted.requests.items()))
    can = sum(result.failure is None for result in answer.pools)
    count = f"{can} of {len(answer.pools)} NodePools can" if can else "no NodePool can"
    yield f"{answer.pod.name}: {count} launch a node for it"
    yield f"  requests {', '.join(amounts) or 'nothing'}"
    width = max(len(result.pool) for result in answer.pools)
    for result in answer.pools:
        yield f"  {result.pool:<{width}}  {_word(result):<5}  {_reason(result)}"
        if result.failure and result.failure.change:
            yield f"  {'':<{width}}         fix: {result.failure.change}"


def _reason(result: Result) -> str:
    if result.failure:
        return f"{result.failure.term}: {result.failure.text}"
    return result.doubt or ("1 instance type fits" if result.types == 1 else f"{result.types} instance types fit")
