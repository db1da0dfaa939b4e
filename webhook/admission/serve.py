"""Puts the webhook together and runs it: rules, certificate, sockets, metrics, log, and the workers that serve."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections import Counter
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from gpugate import __version__
from gpugate.policies.catalog import CATALOG
from gpugate.webhook.admission.certificate import Certificate, names
from gpugate.webhook.admission.front.server import listen
from gpugate.webhook.admission.leaf_memory import LeafMemory
from gpugate.webhook.admission.library_logs import capture_libraries
from gpugate.webhook.admission.log import Log
from gpugate.webhook.admission.options import ServeError, ServeOptions
from gpugate.webhook.admission.policy_reload import PolicyFileWatch, load_rules
from gpugate.webhook.admission.process_memory import forbid_core_dumps, return_large_blocks
from gpugate.webhook.admission.registration import HEALTH, READY, how_it_is_kept, how_to_register
from gpugate.webhook.admission.serve_worker import run_worker
from gpugate.webhook.admission.shared import Shared, now
from gpugate.webhook.admission.workers.board import Board
from gpugate.webhook.admission.workers.supervisor import Supervisor
from gpugate.webhook.cluster import credentials

if TYPE_CHECKING:
    import socket

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.admission.gate import Rules
    from gpugate.webhook.admission.policy_reload import Reload
    from gpugate.webhook.admission.workers.supervisor import Told

__all__ = ["ServeError", "ServeOptions", "serve"]

# Reviews make and drop many objects, and none that refer to each other in a circle (tests/webhook/admission/
# test_freed_bodies.py). Should one do so nevertheless, bodies are counted too: see `Load.answered`.
_COLLECT_AFTER: Final = (50_000, 20, 100)


def serve(options: ServeOptions) -> int:
    """Answer admission reviews until SIGTERM or SIGINT; returns 0 then, 1 when it had to be ended.

    Raises:
        ClusterError: the cluster to look at is not configured so that it can be used.
        PolicyFileError: the policy file cannot be read or is refused.
        ServeError: a certificate cannot be used, an address is taken, or an extra is not installed.
    """
    forbid_core_dumps()
    return_large_blocks()
    if options.trace:
        # What is missing is said before there are workers, which would only die of it.
        importlib.import_module("gpugate.webhook.admission.tracing")
    if options.cluster is not None:
        credentials.check(options.cluster)
    rules = load_rules(options.policy_file)
    leafs = LeafMemory()
    certificate = Certificate(options, now, leafs)
    admission, health = _listen(options.host, options.port), _listen(options.host, options.health_port)
    with TemporaryDirectory(prefix="gpugate-", ignore_cleanup_errors=True) as folder:
        # prometheus-client reads it when it is imported, once and for all.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        from gpugate.webhook.admission.metrics import Metrics  # noqa: PLC0415 -- see above

        metrics = Metrics(CATALOG)
        log = Log(metrics.log_dropped)
        capture_libraries(log)
        board = Board(options.workers, ("certificates",) if options.keeping else ())
        return _Parent(Shared(options, rules, certificate, metrics, log, board, leafs, admission, health)).run()


class _Parent:
    """The supervisor's side: what it tells people, and the last good state, which new workers begin with."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._policy_file = PolicyFileWatch(shared.options.policy_file, shared.rules, self._use, self._reloaded)

    def run(self) -> int:
        shared = self._shared
        shared.report_start()
        for warning in shared.certificate.warnings:
            shared.log.event("warning", warning)
        # What is there now lives as long as the process: never look at it again, nor copy its pages for that.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_COLLECT_AFTER)
        supervisor = Supervisor(
            lambda number: _work(number, shared),
            shared.board,
            (shared.admission, shared.health),
            shared.options.drain_seconds,
            self._ended,
        )
        return supervisor.run(shared.board.rows, self._announce, self._tick, self._reload)

    def _announce(self) -> None:
        shared = self._shared
        url = _url("https", shared.options, shared.admission)
        lines = [
            f"gpugate {__version__} with {_summary(shared.rules.ruleset)}",
            self._how_to_register(url),
            f"{HEALTH}{_url('http', shared.options, shared.health)}",
            f"{READY}{url}",
        ]
        if shared.options.cluster is None:
            lines.insert(1, "No cluster to look at: policies that need other objects skip what they cannot know.")
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()

    def _how_to_register(self, url: str) -> str:
        options = self._shared.options
        if options.keeping is not None:
            return how_it_is_kept(options.keeping)
        made = self._shared.certificate.identity.authority is not None
        return how_to_register(url, made=made, ca_file=options.ca_file, policy_file=options.policy_file)

    def _tick(self) -> None:
        self._policy_file.poll()
        self._tell_of_certificate(self._shared.poll_certificate())

    def _reload(self) -> None:
        self._policy_file.reload()
        self._tell_of_certificate(self._shared.poll_certificate(again=True))

    def _use(self, rules: Rules) -> None:
        self._shared.rules = rules

    def _reloaded(self, reload: Reload) -> None:
        self._shared.metrics.reloaded(reload.generation, not reload.error)
        if reload.error:
            self._shared.log.event(
                "error",
                "policy file refused, the last good one stays in force",
                generation=reload.generation,
                error=reload.error,
            )
        else:
            self._shared.log.event("info", "policy file in force", generation=reload.generation)

    def _tell_of_certificate(self, error: str | None) -> None:
        if error:
            self._shared.log.event("error", "certificate refused, the last good one stays in use", error=error)
        elif error is not None:
            expires = self._shared.certificate.identity.not_after.isoformat()
            self._shared.log.event("info", "certificate in use", expires=expires)

    def _ended(self, told: Told) -> None:
        self._shared.metrics.forget(told.pid)
        self._shared.metrics.worker_restarted()
        self._shared.log.event("error", "worker ended, another is started", pid=told.pid, exit_code=told.exit_code)


def _work(number: int, shared: Shared) -> None:
    """Do the work of one process: serve, or, in the one after the workers, keep certificates."""
    options = shared.options
    if options.keeping is None or number < options.workers:
        run_worker(number, shared)
        return
    # Only the process that needs it pays for it.
    from gpugate.webhook.admission.certificate_keeping import run_keeper  # noqa: PLC0415 -- see above

    run_keeper(number, shared, options.keeping)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ServeError(f"cannot listen on {host} port {port}: {reason.lower()}") from None


def _url(scheme: str, options: ServeOptions, listener: socket.socket) -> str:
    host = names(options)[0]
    port: int = listener.getsockname()[1]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _summary(ruleset: Ruleset) -> str:
    modes = Counter(rule.mode for rule in ruleset.rules)
    shares = ", ".join(f"{count} {mode.word}" for mode, count in sorted(modes.items(), reverse=True))
    return f"{len(ruleset.rules)} policies ({shares})"
