"""What is fuzzed: each target takes bytes and raises where the program would break.

Errors that the program documents, and tells, are no breaks. Hangs and memory are bounded by the fuzzer (`fuzz.py`).
"""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import re
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.catalog import CATALOG
from gpugate.policies.cel.expressions import Environment, compile_expression
from gpugate.policies.cel.functions import GLOBAL, MEMBER
from gpugate.policies.cel.syntax import ExpressionError
from gpugate.policies.cel.values import ANY, DYN, BoundError, EvaluationError, Scope, type_of
from gpugate.policies.engine.config import GpugateError, PolicyConfig
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.admission.app import create_app
from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.front.connection import Connection
from gpugate.webhook.admission.front.limits import Limits, Slot
from gpugate.webhook.admission.front.server import Front
from gpugate.webhook.admission.gate import Gate, Rules
from gpugate.webhook.check.flags import FORMATS, ReportWriter
from gpugate.webhook.check.options import Options
from gpugate.webhook.check.run import check
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.policy_documents import read_policies
from gpugate.webhook.manifests.policy_file import parse_policy_file
from gpugate.webhook.own_policies.scaffold import constant_of, document_of
from gpugate.webhook.project.read import read_project
from gpugate.webhook.report.located import Sort
from gpugate.webhook.report.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.webhook.admission.decisions import Observation

ROOT: Final = Path(__file__).parents[2]
_NOW: Final = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
_LIVE: Final = re.compile(r"##\w*\[|^\s*::(?!(error|warning|notice) file=)", re.MULTILINE)
_ANSWER: Final = re.compile(rb"HTTP/1\.1 (\d{3}) ")


@dataclass(frozen=True)
class Target:
    """Something that takes bytes.

    Attributes:
        run: takes them; raises AssertionError, or what broke.
        seeds: yields inputs to begin with.
        words: what the fuzzer may write into them.
        is_json: whether inputs are changed as JSON values, and not as lines.
        most: how many bytes an input has at most.
        close: gives back what it holds.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]
    words: tuple[str, ...]
    is_json: bool = False
    most: int = 16_384
    close: Callable[[], None] = lambda: None


def _files(*patterns: str) -> Iterator[bytes]:
    for pattern in patterns:
        for file in sorted(ROOT.glob(pattern)):
            if file.is_file() and file.stat().st_size <= 16_384:
                yield file.read_bytes()


def reviews() -> Target:
    """AdmissionReviews: the answer is a review, or a 4xx with a reason, and no policy breaks."""
    seen: list[Observation] = []
    gate = Gate(Rules(bind(CATALOG, PolicyConfig()), "g"), NoFacts(), lambda: _NOW, seen.append)

    def run(data: bytes) -> None:
        for phase in Phase:
            seen.clear()
            answer = gate.answer(phase, data)
            (observed,) = seen
            broken = [each for each in observed.verdict.outcomes if each.error] if observed.verdict else []
            assert not broken, [(each.policy, each.error) for each in broken]
            assert observed.error is None or observed.error.code < 500, observed.error
            said = json.loads(answer.body)
            if answer.status == 200:
                response = said["response"]
                assert said["kind"] == "AdmissionReview"
                assert isinstance(response["uid"], str)
                assert isinstance(response["allowed"], bool)
                assert isinstance(json.loads(base64.b64decode(response.get("patch", "W10="))), list)
            else:
                assert 400 <= answer.status < 500
                assert said["kind"] == "Status"
                assert said["message"]

    def seeds() -> Iterator[bytes]:
        yield from _files("tests/fixtures/reviews/*.json")

    return Target(run, seeds, _WORDS + _FIELDS, is_json=True, most=65_536)


def manifests() -> Target:
    """Files of `check`, read and evaluated, and a report on them."""
    ruleset = bind(CATALOG, PolicyConfig())
    options = Options(_NOW.date(), known=frozenset(policy.id for policy in CATALOG))

    def run(data: bytes) -> None:
        # The bytes choose name and format, because all of them would take eight times as long.
        chosen = zlib.crc32(data)
        named = chosen % 2 == 0
        result = check([Input("a.json" if named else "a.yaml", explicit=named, data=data)], ruleset, options)
        broke = [finding.message for finding in result.report.findings if finding.sort is Sort.BROKE]
        assert not broke, broke
        form = FORMATS[chosen // 2 % len(FORMATS)]
        live = _LIVE.search(ReportWriter(result.report, CATALOG, View(seconds=0.0, suppressed=True)).write(form, ""))
        assert not live, (form, live)

    def seeds() -> Iterator[bytes]:
        yield from _files("policies/*/examples/*/bad-*.yaml", "tests/fixtures/manifests/*", "tests/fixtures/broken/*")

    return Target(run, seeds, _WORDS + _FIELDS)


def policies() -> Target:
    """Policy files, bound to the policies."""

    def run(data: bytes) -> None:
        try:
            parse_policy_file(Path("policy.yaml"), data, lambda config: bind(CATALOG, config))
        except GpugateError:
            return

    def seeds() -> Iterator[bytes]:
        for data in _files("policies/*/examples/*/*.yaml"):
            for document in data.split(b"\n---\n"):
                if b"kind: PolicyConfig" in document:
                    yield document
        yield b"apiVersion: v1\nkind: ConfigMap\ndata:\n  policy.yaml: |\n    kind: PolicyConfig\n"

    return Target(run, seeds, (*_WORDS, *(policy.id for policy in CATALOG)))


def documents() -> Target:
    """Files with policies in CEL; those that load are evaluated on a Pod, and none breaks."""
    (pod,) = _files("tests/fixtures/reviews/pod-create-gpu-untolerated.mutate.json")
    broken: list[str] = []

    def observe(observation: Observation) -> None:
        if observation.verdict:
            broken.extend(each.error for each in observation.verdict.outcomes if each.error)

    def run(data: bytes) -> None:
        broken.clear()
        try:
            loaded = read_policies("policy.yaml", data)
        except GpugateError:
            return
        unique = {policy.id: policy for policy in loaded}
        rules = Rules(bind(unique.values(), PolicyConfig(mode=None)), "fuzz")
        Gate(rules, NoFacts(), lambda: _NOW, observe).validate(pod)
        assert not broken, broken

    def seeds() -> Iterator[bytes]:
        for page in _files("docs/cel-policies.md"):
            yield from (block.encode() for block in re.findall(r"```yaml cel\n(.*?)```", page.decode(), re.DOTALL))
        constants = dict.fromkeys(map(constant_of, ("Pod", "NodePool", "ScaledObject")))
        yield from (text.encode() for constant in constants for text in document_of("acme/x", constant).values())

    words = """id title why mode match kinds namespaces operations conditions params validations expression message
        messageExpression path fix examples allowed denied gpu.pod.gpus gpu.pod.resources gpu.pod.workloadClass object oldObject
        request.operation namespaceObject params. has( .all(x, .exists(x, .map(x, .filter(x, .matches( quantity( size( .orValue(
        .? [? == != <= >= && || ! + - * / % in ? : true false null 0 1u 1.5 'a' r'\\d' b'x' [] {} duration( string( int( dyn("""
    return Target(run, seeds, (*_WORDS, *_FIELDS, *words.split()))


def projects() -> Target:
    """Project files, as YAML and as TOML."""
    folder = tempfile.TemporaryDirectory(prefix="gpugate-fuzz-")

    def run(data: bytes) -> None:
        for name in (".gpugate.yaml", "pyproject.toml"):
            Path(folder.name, name).write_bytes(data)
            try:
                read_project(Path(name), Path(folder.name))
            except GpugateError:
                continue

    def seeds() -> Iterator[bytes]:
        yield from _files(".gpugate.yaml", "pyproject.toml", "tests/ci-example/.gpugate.yaml")
        yield b"paths: [deploy]\npolicy_file: policy.yaml\nselect: [pods]\nignore: [scaling/x]\ncharts:\n- chart: a\n  values: [[b]]\n"
        yield b'[tool.gpugate]\npaths = ["deploy"]\noutput = ["sarif=a.sarif"]\nmin_severity = "warning"\n'

    words = ("charts", "values", "paths", "output", "[tool.gpugate]", "[[", "]]", "baseline", "target")
    return Target(run, seeds, (*_WORDS, *words), close=folder.cleanup)


def expressions() -> Target:
    """CEL expressions: each is refused, has a value of the type that was checked, or has none; `|| true` hides no bound.

    The type of `self` is not known before it has a value, so an expression that may read it is of no certain type.
    """
    environment = Environment({"object": DYN, "self": ANY}, {})
    pod = json.loads(next(_files("tests/fixtures/reviews/*.json")))["request"]["object"]

    def value_of(text: str) -> Any:
        expression = compile_expression(text, environment, gives=DYN)
        try:
            value = expression.run(Scope({"object": pod, "self": pod}))
        except EvaluationError as error:
            return error
        assert "self" in text or expression.type.name in {"dyn", "A", type_of(value)}, (expression.type, value)
        return value

    def run(data: bytes) -> None:
        text = data.decode(errors="replace")
        try:
            value = value_of(text)
            joined = value_of(f"({text}\n) || true")
        except ExpressionError:
            return
        assert joined is True or isinstance(joined, BoundError), (value, joined)

    def seeds() -> Iterator[bytes]:
        for file in sorted(ROOT.glob("webhook/schemas/data/karpenter*.json")):
            for node in json.loads(file.read_text(encoding="utf-8"))["nodes"]:
                yield from (rule["test"].encode() for rule in node.get("rules", ()))
        yield from (text.encode() for text in _EXPRESSIONS)

    return Target(run, seeds, tuple({*GLOBAL, *MEMBER, *_CEL.split(), *_FIELDS}), most=1_024)


_EXPRESSIONS: Final = (
    "object.spec.containers.all(c, c.image.startsWith('r.io/') && !has(c.securityContext))",
    "self.metadata.?labels['team'].orValue('') in ['a', 'b'] || size(object.spec.containers) > 2",
    "quantity('1Gi').add(2).compareTo(quantity('500m')) > 0 ? [1, 2].sum() == 3 : duration('1h').getHours() < 2",
    "object.spec.containers.map(c, c.name).filter(n, n.matches('^[a-z]+$')).exists_one(n, n == 'main')",
    "optional.of({'a': b'x'}).optMap(m, m['a']).hasValue() && 1u + 2u == 3u && -7 / 2 == -3 && 1.5e3 > 2.0",
)
_CEL: Final = r"""object self true false null in && || ! == != <= >= + - * / % ? : . .? [? ( ) [ ] { } , all exists exists_one
filter map optMap optFlatMap 0x1F 9223372036854775807 -9223372036854775808 1u 1e308 '' "" A é r'\d' b'a' '^a*$' //"""


class _Transport(asyncio.Transport):
    """Keeps what is written; TLS, as far as anybody asks."""

    def __init__(self) -> None:
        super().__init__({"ssl_object": object(), "sslcontext": object(), "peername": ("127.0.0.1", 1)})
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self) -> None:
        """Do nothing."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing."""


class _Health:
    def missing(self) -> tuple[str, ...]:
        return ()

    def exposition(self, accept: str) -> tuple[str, bytes]:
        return "text/plain", accept.encode(errors="replace")

    def shadowed(self) -> bytes | None:
        return None


def heads() -> Target:
    """Bytes of a connection; the first byte says in which pieces they come."""
    loop = asyncio.new_event_loop()
    troubles: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: troubles.append(context))
    gate = Gate(Rules(bind(CATALOG, PolicyConfig()), "g"), NoFacts(), lambda: _NOW)
    wsgi = create_app(gate, _Health())

    async def front() -> Front:
        def count(_: object) -> None:
            """Count nothing."""

        return Front(lambda load, turns: AdmissionAsgi(gate, wsgi, load, turns, count), Limits(), count)

    made = loop.run_until_complete(front())

    async def connected(pieces: list[bytes]) -> bytes:
        slot, transport = made.slots.enter("127.0.0.1", lambda: None), _Transport()
        assert isinstance(slot, Slot)
        connection = Connection(made, slot, "https")
        connection.connection_made(transport)
        for piece in pieces:
            connection.data_received(piece)
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        connection.connection_lost(None)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=60)
            assert not late, "a task goes on without its connection"
        return transport.written

    def run(data: bytes) -> None:
        troubles.clear()
        size = data[0] + 1 if data else 1
        pieces = (
            [data[1:]] if size > 128 else [data[start : start + size * 8] for start in range(1, len(data), size * 8)]
        )
        written = loop.run_until_complete(connected(pieces))
        assert not troubles, troubles
        codes = [int(found[1]) for found in _ANSWER.finditer(written)]
        assert not written or codes, written[:100]
        assert not [code for code in codes if code >= 500 and code not in {501, 503, 505}], written[:200]
        assert made.load.waiting == 0
        assert made.slots.open == 0

    def seeds() -> Iterator[bytes]:
        body = next(_files("tests/fixtures/reviews/*.json"))
        head = b"POST /mutate?timeout=10s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        yield b"\xff" + head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        yield b"\x20" + head + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n2\r\n1}\r\n0\r\nX: y\r\n\r\n'
        yield b"\xff" + head + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}"
        yield b"\xff" + head + b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\n{}" * 3
        yield b"\x01GET /readyz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /metrics HTTP/1.0\r\n\r\n"
        yield b"\xffHEAD /healthz HTTP/1.1\r\nHost: h\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

    words = "GET |POST |HTTP/1.1\r\n|HTTP/1.0\r\n|Host: |Content-Length: |Transfer-Encoding: chunked\r\n|\r\n\r\n|0\r\n\r\n|"
    words += "Expect: 100-continue\r\n|Connection: close\r\n|Upgrade: |Content-Encoding: gzip\r\n|traceparent: |%00|#|?timeout="
    return Target(run, seeds, tuple(words.split("|")), most=4_096, close=loop.close)


# What readers of YAML and quantities are careful with.
_YAML = r"""--- ---#x ... - : ? | > & * ! !!str !!int !!binary %YAML <<: {} [] null ~ .nan .inf 1e999 0x1F 0o7 1_000 -0 1:30 &a *a &b
*b '' "" \ ## ##[x] ##vso[x] ::error::x \u0041 \ud800 true yes on 1Gi 100m 1e400 9223372036854775808 -1 1E3Ki 10% 2026-01-01"""
_WORDS: Final = (*_YAML.split(), "\t", "\ufeff", "\u2028", "\x85", "\x00", "\r")
_MEMBERS = """apiVersion kind metadata name namespace generateName labels annotations spec template items List PodList Pod Secret
NodePool containers initContainers env value valueFrom resources limits requests claims nvidia.com/gpu tolerations operator Exists
key values effect requirements node.kubernetes.io/instance-type In NotIn Gt Lt expireAfter budgets nodes schedule duration
disruption consolidateAfter Never nodeSelector affinity triggers scaleTargetRef minReplicas jobTargetRef ownerReferences
deletionTimestamp finalizers operation CREATE UPDATE DELETE CONNECT object oldObject subResource dryRun uid userInfo groups"""
_FIELDS: Final = tuple(_MEMBERS.split())

TARGETS: Final = {
    target.__name__: target for target in (reviews, manifests, policies, documents, projects, expressions, heads)
}
