"""Assemble and run the server: policies, certificate, sockets, metrics, log and workers."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import resource
import shlex
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from gpugate import __version__
from gpugate.policies.catalog import CATALOG
from gpugate.webhook.admission.certificate import Certificate, LeafMemory, names
from gpugate.webhook.admission.front.load import LargeReviews
from gpugate.webhook.admission.front.server import listen
from gpugate.webhook.admission.log import Log, capture_libraries
from gpugate.webhook.admission.options import ServeError, ServeOptions
from gpugate.webhook.admission.policy_reload import PolicyFileWatch, load_rules
from gpugate.webhook.admission.serve_worker import run_worker
from gpugate.webhook.admission.shared import Shared, now
from gpugate.webhook.admission.workers import Board, Supervisor
from gpugate.webhook.cluster import credentials

if TYPE_CHECKING:
    import socket

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.admission.gate import Rules
    from gpugate.webhook.admission.options import Keeping
    from gpugate.webhook.admission.policy_reload import Reload
    from gpugate.webhook.admission.workers import Told

# A limit of nothing holds for files only; at one byte the kernel starts no program that would take the dump either
# (fs/coredump.c, Linux 6.12).
_LIMIT: Final = 1
# Parameters of mallopt(3), from malloc.h of glibc 2.41.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
# Larger than the parts in which a body comes, some 320 KiB, which would be mapped one by one.
_LARGE_BLOCK: Final = 1024 * 1024


def forbid_core_dumps() -> None:
    """Let neither this process nor those that it starts leave a dump."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    limit = _LIMIT if hard == resource.RLIM_INFINITY else min(hard, _LIMIT)
    resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))


def return_large_blocks() -> None:
    """Return blocks from 1 MiB on to the kernel as soon as they are freed; children that are forked do so too.

    Left alone, glibc maps a block separately only if it is larger than the largest one freed so far, up to 32 MiB, and
    keeps twice as much of the heap for later (`M_MMAP_THRESHOLD`, mallopt(3)). After a body of 24 MiB that is 48 MiB for
    each worker, for good. An allocator without mallopt is left as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, _LARGE_BLOCK)


# The line that says the server answers; scripts wait for it.
READY = "ready: "
# The line that says where probes and scrapes go.
HEALTH = "health: "


def how_to_register(url: str, *, made: bool, ca_file: Path | None, policy_file: Path | None) -> str:
    """Write the commands that register a server at `url`, and that try it.

    Args:
        url: scheme, host and port.
        made: whether the certificate and its authority were made at start.
        ca_file: where that authority was written.
        policy_file: the policy file in force.
    """
    file = shlex.quote(str(ca_file)) if made and ca_file else "CA_FILE"
    rules = f" --policy-file {shlex.quote(str(policy_file))}" if policy_file else ""
    lines = [
        "To register it with a cluster that reaches this address:",
        f"  gpugate registration --url {url} --ca-file {file}{rules} | kubectl apply -f -",
        "To try it:",
        f"  curl --cacert {file} -H 'Content-Type: application/json' --data-binary @review.json {url}/validate",
    ]
    if not made:
        lines.insert(2, "  where CA_FILE holds the authority that signed the certificate you gave, PEM")
    elif ca_file is None:
        lines.insert(2, "  where CA_FILE is written by: gpugate serve --ca-file CA_FILE")
    return "\n".join(lines)


def how_it_is_kept(keeping: Keeping) -> str:
    """Write where the certificates come from, and who is told to trust them."""
    return (
        f"Certificates come from the authorities in the Secret {keeping.namespace}/{keeping.secret}; "
        f"the webhook configurations {keeping.configuration} are told to trust them."
    )


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
        large = LargeReviews(Path(folder) / "large-reviews.lock")
        shared = Shared(options, rules, certificate, metrics, log, board, leafs, large, admission, health)
        return _Parent(shared).run()


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
    from gpugate.webhook.admission.keeper import run_keeper  # noqa: PLC0415 -- see above

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
