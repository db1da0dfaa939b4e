"""Create and run one worker: gate, cluster data, application, front, and their updates."""

from __future__ import annotations

import platform
import re
from time import monotonic
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.ruleset import Needs
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.admission.app import create_app
from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.cpu_budget import MOST_CPU_SECONDS, CpuBudget
from gpugate.webhook.admission.decisions import evaluated_kinds
from gpugate.webhook.admission.front.server import Front
from gpugate.webhook.admission.gate import QUICK_SECONDS, Gate, Rules
from gpugate.webhook.admission.policy_reload import PolicyFileWatch
from gpugate.webhook.admission.record_file import Folder
from gpugate.webhook.admission.recorder import Recorder
from gpugate.webhook.admission.shadow import Shadow
from gpugate.webhook.admission.shared import now
from gpugate.webhook.admission.workers import Duties, Worker
from gpugate.webhook.report.ownership import is_controller, owner_of

if TYPE_CHECKING:
    import socket

    from gpugate.policies.engine.ruleset import Rule
    from gpugate.policies.sdk.objects import Request
    from gpugate.webhook.admission.decisions import Observation
    from gpugate.webhook.admission.front.handover import HandOver
    from gpugate.webhook.admission.policy_reload import Reload
    from gpugate.webhook.admission.shadow_table import Pair
    from gpugate.webhook.admission.shared import Shared
    from gpugate.webhook.admission.tracing import Tracer
    from gpugate.webhook.admission.workers import Listening
    from gpugate.webhook.cluster.facts import ClusterWatch
    from gpugate.webhook.cluster.reflector import KindState

# The seconds that a new ruleset waits for cluster data that only it needs.
_FACTS_SECONDS: Final = 10.0
# The files of each process that fit into the limit of a record.
_FILES: Final = 4
_LONGEST_HOST: Final = 100


def run_worker(number: int, shared: Shared) -> None:
    """Serve until a signal ends the worker; call it in a separate process."""
    if shared.hand_over:
        # The kernel accepts connections as long as any process has the listener open.
        shared.hand_over.listener.close()
    shared.guarding.enter(number, counts_cpu=shared.hand_over is None)
    _Parts(number, shared, shared.hand_over).run((shared.admission, shared.context), shared.health)


def run_expensive(number: int, shared: Shared, hand_over: HandOver) -> None:
    """Evaluate the reviews that workers hand over, until a signal ends the process; call it in a separate process."""
    shared.admission.close()
    shared.health.close()
    shared.guarding.enter(number, counts_cpu=True)
    _Parts(number, shared, None).run((hand_over.listener, None), None)


def _host() -> str:
    """Return the name of this Pod or machine, as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", platform.node())[:_LONGEST_HOST] or "host"


class _Parts:
    """The parts of one worker."""

    def __init__(self, number: int, shared: Shared, hand_over: HandOver | None) -> None:
        self._number = number
        self._shared = shared
        self._hand_over = hand_over
        shared.log.start()
        shared.report_start()
        self._cluster = self._watched_cluster()
        self._tracer = self._started_tracer()
        self._next: tuple[Rules, float] | None = None
        facts = self._cluster.facts if self._cluster else NoFacts()
        budget = CpuBudget()
        self._gate = Gate(shared.rules, facts, now, self._observe, budget)
        self._policy_file = PolicyFileWatch(shared.files, shared.rules, self._use, self._reloaded, shared.may_load)
        self._shadow = _ShadowParts(number, shared, self._gate, budget, self._cluster) if shared.shadow else None
        self._vocabulary = shared.vocabulary
        self._recorder = self._started_recorder()

    def run(self, admission: Listening, health: socket.socket | None) -> None:
        shared = self._shared
        duties = Duties(self._missing, self._tick, self._reload, self._stop)
        worker = Worker(self._number, shared.board, shared.options.drain_seconds)
        worker.run(self._front, admission, health, duties)

    def missing(self) -> tuple[str, ...]:
        """Return what any worker needs before it is ready."""
        return self._shared.board.missing()

    def exposition(self, accept: str) -> tuple[str, bytes]:
        """Return the metrics of all workers."""
        return self._shared.metrics.exposition(accept)

    def shadowed(self) -> bytes | None:
        """Return what all workers know of the shadow policy file, None without one."""
        return self._shadow.shadow.document() if self._shadow else None

    def _front(self) -> Front:
        app = create_app(self._gate, self)
        count = self._shared.metrics.front
        span = self._tracer.span if self._tracer else None
        options = self._shared.options
        front = Front(
            lambda load, turns: AdmissionAsgi(self._gate, app, load, turns, count, span, hand_over=self._hand_over),
            options.limits,
            count,
            frozenset(options.client_names) if options.client_ca else None,
        )
        if self._shadow:
            self._shadow.shadow.attach(front.loop, front.load)
        if self._recorder:
            self._recorder.attach(front.loop, front.load)
        return front

    def _watched_cluster(self) -> ClusterWatch | None:
        options = self._shared.options.cluster
        if options is None:
            return None
        from gpugate.webhook.cluster.connection import connect  # noqa: PLC0415 -- imports the Kubernetes client
        from gpugate.webhook.cluster.facts import ClusterWatch  # noqa: PLC0415 -- as above

        watch = ClusterWatch(connect(options), Needs(self._shared.rules.ruleset.rules), self._log_kind_state)
        watch.start()
        return watch

    def _started_tracer(self) -> Tracer | None:
        if not self._shared.options.trace:
            return None
        from gpugate.webhook.admission.tracing import Tracer, otlp_provider  # noqa: PLC0415 -- an extra

        return Tracer(otlp_provider(), evaluated_kinds(self._shared.rules.ruleset.catalog))

    def _started_recorder(self) -> Recorder | None:
        recording, vocabulary = self._shared.options.recording, self._vocabulary
        if recording is None or vocabulary is None:
            return None
        processes = self._shared.options.workers + (self._shared.hand_over is not None)
        # A complete file can be removed, so that each process has several.
        file_bytes = max(recording.most_bytes // (_FILES * processes), 1)
        return Recorder(
            Folder(recording.folder, f"{_host()}-{self._number}", recording.most_bytes, file_bytes),
            recording.fraction,
            lambda: self._vocabulary or vocabulary,
            lambda: self._gate.rules,
            now,
            self._shared.metrics.record_result,
            # One snapshot is enough for all processes.
            facts=self._cluster.facts if self._cluster and self._number == 0 else None,
        )

    def _observe(self, observation: Observation) -> None:
        self._shared.metrics.observe(observation)
        self._shared.log.observe(observation)
        if self._tracer:
            self._tracer.observe(observation)
        if self._shadow:
            self._shadow.shadow.offer(observation)
        if self._recorder:
            self._recorder.offer(observation)

    def _use(self, rules: Rules) -> None:
        """Put a new ruleset into force, after its cluster data has been read or the time limit has expired."""
        self._shared.metrics.know(rules.ruleset.catalog)
        if self._vocabulary:
            self._vocabulary = self._vocabulary.extended(self._shared.policy_texts())
        if self._cluster:
            shadowing = self._shadow.rules if self._shadow else ()
            self._cluster.update_needs(Needs((*rules.ruleset.rules, *shadowing)))
        self._next = rules, monotonic() + _FACTS_SECONDS
        self._apply_next()

    def _apply_next(self) -> None:
        if self._next is not None:
            rules, latest = self._next
            if not (self._cluster and self._cluster.unread()) or monotonic() >= latest:
                self._gate.use(rules)
                self._next = None

    def _reloaded(self, reload: Reload) -> None:
        # Workers do not log the reload, because the supervisor reads the same file and logs it once.
        self._shared.metrics.reloaded(reload.generation, not reload.error)

    def _log_kind_state(self, state: KindState) -> None:
        self._shared.metrics.facts(state.kind.name, state.objects, served=state.served)
        if state.reason:
            self._shared.log.event(
                "warning",
                "cluster data not available",
                resource=state.resource,
                standing=state.status.value,
                reason=state.reason,
            )

    def _missing(self) -> tuple[str, ...]:
        return self._cluster.missing() if self._cluster else ()

    def _tick(self, front: Front) -> None:
        self._policy_file.poll()
        self._apply_next()
        if self._shadow:
            self._shadow.tick()
        if self._recorder:
            self._recorder.tick(may_snapshot=not self._missing())
        self._shared.poll_certificate()
        for kind, seconds in self._cluster.ages().items() if self._cluster else ():
            self._shared.metrics.facts_age(kind.name, seconds)
        self._shared.metrics.connections(front.slots.open)
        self._shared.metrics.body_bytes(front.load.bodies.bytes)

    def _reload(self) -> None:
        self._policy_file.reload()
        if self._shadow:
            self._shadow.policy_file.reload()
        self._shared.poll_certificate(force=True)

    def _stop(self) -> None:
        # Without handlers, the signal of the timer would end the process.
        self._shared.guarding.leave()
        if self._recorder:
            self._recorder.close()
        if self._cluster:
            self._cluster.stop()
        if self._tracer:
            self._tracer.close()
        self._shared.log.close()


class _ShadowParts:
    """The shadow policies of one worker, and the updates of their file and of the cluster data that only they need."""

    def __init__(
        self, number: int, shared: Shared, gate: Gate, budget: CpuBudget, cluster: ClusterWatch | None
    ) -> None:
        assert shared.shadow is not None  # noqa: S101 -- for the type checker: only then there are shadow policies
        self._shared = shared
        self._gate = gate
        self._cluster = cluster
        # The rules whose needs the cluster data has.
        self.rules: tuple[Rule, ...] = ()
        expensive = number >= shared.options.workers
        self.shadow = Shadow(
            cluster.facts.snapshot if cluster else NoFacts,
            now,
            budget,
            MOST_CPU_SECONDS if expensive else QUICK_SECONDS,
            self,
            shared.shadow.folder / f"{number}.shadow",
            current=lambda: gate.rules.generation,
        )
        known = shared.shadow.rules
        if known is not None:
            self.shadow.use(known)
        if shared.shadow.error:
            self.shadow.reject(shared.shadow.error)
        self.policy_file = PolicyFileWatch(
            shared.shadow.files, known or Rules(shared.rules.ruleset, ""), self._use, self._reloaded, shared.may_load
        )

    def tick(self) -> None:
        """Reload the file if it changed, and show the table to the other workers."""
        self.policy_file.poll()
        rules = self.shadow.rules.ruleset.rules if self.shadow.rules else ()
        # Data that only the shadow policies need must not delay readiness.
        if self._cluster and rules is not self.rules and not self._cluster.missing():
            self.rules = rules
            self._cluster.update_needs(Needs((*self._gate.rules.ruleset.rules, *rules)))
        self.shadow.publish()

    def result(self, result: str) -> None:
        """Count a review."""
        self._shared.metrics.shadow_result(result)

    def pair(self, request: Request, pair: Pair) -> None:
        """Count the decisions of a policy on a review."""
        self._shared.metrics.shadow_pair(request, pair)

    def new(self, request: Request, pair: Pair) -> None:
        """Log different decisions that are new for an owner."""
        owner = owner_of(request)
        self._shared.log.event(
            "info",
            "the shadow policy file decides differently",
            policy=pair.policy,
            current=pair.current,
            candidate=pair.candidate,
            kind=str(request.kind),
            namespace=request.namespace,
            name=request.shown_name,
            owner=str(owner),
            operation=request.operation.value,
            requester="controller" if is_controller(request.user) else "person",
        )

    def _use(self, rules: Rules) -> None:
        self.shadow.use(rules)

    def _reloaded(self, reload: Reload) -> None:
        self._shared.metrics.shadow_reloaded(ok=not reload.error)
        if reload.error:
            self.shadow.reject(reload.error)
