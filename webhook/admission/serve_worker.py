"""Create and run one worker: gate, cluster data, application, front, and their updates."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.ruleset import Needs
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.admission.app import create_app
from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.cpu_budget import CpuBudget
from gpugate.webhook.admission.decisions import evaluated_kinds
from gpugate.webhook.admission.front.server import Front
from gpugate.webhook.admission.gate import Gate
from gpugate.webhook.admission.policy_reload import PolicyFileWatch
from gpugate.webhook.admission.shared import now
from gpugate.webhook.admission.workers import Duties, Worker

if TYPE_CHECKING:
    import socket

    from gpugate.webhook.admission.decisions import Observation
    from gpugate.webhook.admission.front.handover import HandOver
    from gpugate.webhook.admission.gate import Rules
    from gpugate.webhook.admission.policy_reload import Reload
    from gpugate.webhook.admission.shared import Shared
    from gpugate.webhook.admission.tracing import Tracer
    from gpugate.webhook.admission.workers import Listening
    from gpugate.webhook.cluster.facts import ClusterWatch
    from gpugate.webhook.cluster.reflector import KindState

# The seconds that a new ruleset waits for cluster data that only it needs.
_FACTS_SECONDS: Final = 10.0


def run_worker(number: int, shared: Shared) -> None:
    """Serve until a signal ends the worker; call it in a separate process."""
    if shared.hand_over:
        # The kernel accepts connections as long as any process has the listener open.
        shared.hand_over.listener.close()
    shared.guarding.enter(number, counts_cpu=shared.hand_over is None)
    _Parts(shared, shared.hand_over).run(number, (shared.admission, shared.context), shared.health)


def run_expensive(number: int, shared: Shared, hand_over: HandOver) -> None:
    """Evaluate the reviews that workers hand over, until a signal ends the process; call it in a separate process."""
    shared.admission.close()
    shared.health.close()
    shared.guarding.enter(number, counts_cpu=True)
    _Parts(shared, None).run(number, (hand_over.listener, None), None)


class _Parts:
    """The parts of one worker."""

    def __init__(self, shared: Shared, hand_over: HandOver | None) -> None:
        self._shared = shared
        self._hand_over = hand_over
        shared.log.start()
        shared.report_start()
        self._cluster = self._watched_cluster()
        self._tracer = self._started_tracer()
        self._next: tuple[Rules, float] | None = None
        facts = self._cluster.facts if self._cluster else NoFacts()
        self._gate = Gate(shared.rules, facts, now, self._observe, CpuBudget())
        self._policy_file = PolicyFileWatch(shared.files, shared.rules, self._use, self._reloaded, shared.may_load)

    def run(self, number: int, admission: Listening, health: socket.socket | None) -> None:
        shared = self._shared
        duties = Duties(self._missing, self._tick, self._reload, self._stop)
        worker = Worker(number, shared.board, shared.options.drain_seconds)
        worker.run(self._front, admission, health, duties)

    def missing(self) -> tuple[str, ...]:
        """Return what any worker needs before it is ready."""
        return self._shared.board.missing()

    def exposition(self, accept: str) -> tuple[str, bytes]:
        """Return the metrics of all workers."""
        return self._shared.metrics.exposition(accept)

    def _front(self) -> Front:
        app = create_app(self._gate, self)
        count = self._shared.metrics.front
        span = self._tracer.span if self._tracer else None
        options = self._shared.options
        return Front(
            lambda load, turns: AdmissionAsgi(self._gate, app, load, turns, count, span, hand_over=self._hand_over),
            options.limits,
            count,
            frozenset(options.client_names) if options.client_ca else None,
        )

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

    def _observe(self, observation: Observation) -> None:
        self._shared.metrics.observe(observation)
        self._shared.log.observe(observation)
        if self._tracer:
            self._tracer.observe(observation)

    def _use(self, rules: Rules) -> None:
        """Put a new ruleset into force, after its cluster data has been read or the time limit has expired."""
        self._shared.metrics.know(rules.ruleset.catalog)
        if self._cluster:
            self._cluster.update_needs(Needs(rules.ruleset.rules))
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
        self._shared.poll_certificate()
        for kind, seconds in self._cluster.ages().items() if self._cluster else ():
            self._shared.metrics.facts_age(kind.name, seconds)
        self._shared.metrics.connections(front.slots.open)
        self._shared.metrics.body_bytes(front.load.bodies.bytes)

    def _reload(self) -> None:
        self._policy_file.reload()
        self._shared.poll_certificate(force=True)

    def _stop(self) -> None:
        # Without handlers, the signal of the timer would end the process.
        self._shared.guarding.leave()
        if self._cluster:
            self._cluster.stop()
        if self._tracer:
            self._tracer.close()
        self._shared.log.close()
