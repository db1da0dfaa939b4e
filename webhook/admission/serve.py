"""Create and run the server: policies, certificate, sockets, metrics, log and workers."""

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
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING, Final

from gpugate import __version__
from gpugate.policies.engine.caught_error import described
from gpugate.policies.engine.clusters import ClusterConfig, labels_of
from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.admission.certificate import Certificate, LeafMemory, names
from gpugate.webhook.admission.front.handover import HandOver
from gpugate.webhook.admission.front.server import listen
from gpugate.webhook.admission.gate import Rules
from gpugate.webhook.admission.log import Log, capture_libraries
from gpugate.webhook.admission.options import ServeError, ServeOptions
from gpugate.webhook.admission.policy_events import PolicyEvents
from gpugate.webhook.admission.policy_guard import Guard, Guarding, Trial, trial
from gpugate.webhook.admission.policy_reload import PolicyFileWatch, Reload, RulesFiles
from gpugate.webhook.admission.redaction import Vocabulary, library_texts
from gpugate.webhook.admission.serve_worker import run_expensive, run_worker
from gpugate.webhook.admission.shared import Shared, SharedShadow, now
from gpugate.webhook.admission.workers import Board, Supervisor
from gpugate.webhook.cli.identity import identity_flags
from gpugate.webhook.cluster import credentials
from gpugate.webhook.own_policies.catalog import OwnPaths
from gpugate.webhook.own_policies.sources import OwnPolicyError

if TYPE_CHECKING:
    import socket

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.platform import ClusterIdentity
    from gpugate.webhook.admission.options import Keeping, Recording
    from gpugate.webhook.admission.policy_reload import RulesContent
    from gpugate.webhook.admission.workers import WorkerExit

# A limit of 0 applies only to dump files. At one byte the kernel does not start a program for the dump either
# (fs/coredump.c, Linux 6.12).
_LIMIT: Final = 1
# Parameters of mallopt(3), from malloc.h of glibc 2.41.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
# Larger than a received part of a body (about 320 KiB), so that these parts are not mapped separately.
_LARGE_BLOCK: Final = 1024 * 1024


def forbid_core_dumps() -> None:
    """Disable core dumps of this process and its children."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    limit = _LIMIT if hard == resource.RLIM_INFINITY else min(hard, _LIMIT)
    resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))


def return_large_blocks() -> None:
    """Return blocks of 1 MiB or more to the kernel as soon as they are freed, also in forked children.

    By default, glibc maps a block separately only if it is larger than the largest block freed so far, up to 32 MiB, and
    keeps twice that size of the heap (`M_MMAP_THRESHOLD`, mallopt(3)). After a body of 24 MiB each worker would keep
    48 MiB. Allocators without mallopt are not changed.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, _LARGE_BLOCK)


# Most policies are loaded in less. The supervisor handles no signal meanwhile.
_TRIAL_WAIT_SECONDS: Final = 0.3

# The prefix of the line with the server's URL; scripts wait for it.
READY = "ready: "
# The prefix of the line with the URL for probes and scrapes.
HEALTH = "health: "


def registration_help(
    url: str,
    *,
    created: bool,
    ca_file: Path | None,
    policy_file: Path | None,
    cluster: ClusterIdentity | None = None,
) -> str:
    """Return the commands that register a server at `url` and that test it.

    Args:
        url: scheme, host and port.
        created: whether the certificate and its authority were created at start.
        ca_file: the file with that authority.
        policy_file: the policy file in force.
        cluster: what flags say of the cluster.
    """
    file = shlex.quote(str(ca_file)) if created and ca_file else "CA_FILE"
    rules = f" --policy-file {shlex.quote(str(policy_file))}" if policy_file else ""
    rules += "".join(f" {shlex.quote(flag)}" for flag in identity_flags(cluster)) if cluster else ""
    lines = [
        "To register it in a cluster that can reach this address:",
        f"  gpugate registration --url {url} --ca-file {file}{rules} | kubectl apply -f -",
        "To test it:",
        f"  curl --cacert {file} -H 'Content-Type: application/json' --data-binary @review.json {url}/validate",
    ]
    if not created:
        lines.insert(2, "  where CA_FILE contains the CA (PEM) of the certificate in --tls-cert")
    elif ca_file is None:
        lines.insert(2, "  where this command writes CA_FILE: gpugate serve --ca-file CA_FILE")
    return "\n".join(lines)


def certificates_help(keeping: Keeping) -> str:
    """Return a sentence that names the Secret of the authorities and the webhook configurations that trust them."""
    return (
        f"The authorities in the Secret {keeping.namespace}/{keeping.secret} sign the serving certificate; "
        f"gpugate writes them into the webhook configurations {keeping.configuration}."
    )


__all__ = ["ServeError", "ServeOptions", "serve"]

# Reviews create and free many objects without reference cycles (tests/webhook/admission/test_freed_bodies.py).
# `Load.count_freed` also collects by the size of bodies, in case a cycle exists.
_COLLECT_AFTER: Final = (50_000, 20, 100)


def serve(options: ServeOptions) -> int:
    """Answer admission reviews until SIGTERM or SIGINT; return 0, or 1 if workers had to be killed.

    Raises:
        ClusterError: the configuration of the cluster connection is invalid.
        OwnPolicyError: a policy outside the library cannot be loaded.
        PolicyFileError: the policy file cannot be read or is invalid.
        ServeError: a certificate is invalid, an address is in use, or an extra is not installed.
    """
    forbid_core_dumps()
    return_large_blocks()
    if options.trace:
        # Report a missing extra before workers start, because each worker would exit with this error.
        importlib.import_module("gpugate.webhook.admission.tracing")
    if options.cluster is not None:
        credentials.check(options.cluster)
        # Modules that workers import after the fork are copied in each of them: 2 MB of 132 with two workers.
        importlib.import_module("gpugate.webhook.cluster.connection")
        importlib.import_module("gpugate.webhook.cluster.facts")
    others = (
        *(["expensive reviews"] if options.workers > 1 else []),
        *(["certificates"] if options.keeping else []),
    )
    guarding = Guarding(Guard(options.workers + len(others)))
    files = RulesFiles(options.policy_file, OwnPaths(options.policy_paths), guarding.guarded, options.identity)
    rules = _loaded(files, guarding)
    leafs = LeafMemory()
    certificate = Certificate(options, now, leafs)
    admission, health = _listen(options.host, options.port), _listen(options.host, options.health_port)
    with TemporaryDirectory(prefix="gpugate-", ignore_cleanup_errors=True) as folder:
        # prometheus-client reads it only when it is imported.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        from gpugate.webhook.admission.metrics import Metrics  # noqa: PLC0415 -- see above

        metrics = Metrics(rules.ruleset.catalog)
        log = Log(metrics.log_dropped)
        capture_libraries(log)
        hand_over = _hand_over(Path(folder)) if options.workers > 1 else None
        board = Board(options.workers, others)
        shadow = _shadow(options, guarding, Path(folder))
        shared = Shared(
            options,
            rules,
            certificate,
            metrics,
            log,
            board,
            leafs,
            hand_over,
            admission,
            health,
            files,
            guarding,
            shadow,
        )
        if options.recording is not None:
            _prepare_recording(shared, options.recording)
        return _Parent(shared).run()


def _loaded(files: RulesFiles, guarding: Guarding) -> Rules:
    """Load the rules; the code of policies outside the library runs in a process of its own first."""
    content = files.read()
    if content.sources:
        trial(lambda: files.load(content))
    rules = files.load(content)
    guarding.guard.accept(content.own)
    return rules


def _shadow(options: ServeOptions, guarding: Guarding, folder: Path) -> SharedShadow | None:
    """Load the shadow policy file; an invalid one is reported, and the server starts without it."""
    if options.shadow_policy_file is None:
        return None
    shadow = SharedShadow(
        RulesFiles(options.shadow_policy_file, OwnPaths(options.policy_paths), guarding.limited, options.identity),
        folder,
    )
    try:
        content = shadow.files.read()
        _check_own(content, guarding)
        shadow.rules = shadow.files.load(content)
    except Exception as error:  # noqa: BLE001 -- no shadow policy file may prevent reviews
        shadow.error = str(error) if isinstance(error, GpugateError) else f"cannot be used ({described(error)})"
    return shadow


def _prepare_recording(shared: Shared, recording: Recording) -> None:
    """Read the words that a record may contain, and report a directory that cannot be used; reviews are answered anyway."""
    shared.vocabulary = Vocabulary(library_texts(), shared.policy_texts())
    try:
        recording.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryFile(dir=recording.folder):
            pass
    except OSError as error:
        shared.log.event(
            "warning", "reviews cannot be recorded", folder=str(recording.folder), reason=error.strerror or ""
        )


def _check_own(content: RulesContent, guarding: Guarding) -> None:
    """Refuse policies outside the library that were not loaded in a trial.

    Raises:
        OwnPolicyError: the shadow policy file names others than the policy file.
    """
    if content.sources and content.own[:16] != guarding.guard.accepted:
        raise OwnPolicyError(
            "the shadow policy file uses other policies outside the library than the policy file: name the same policy_paths in both"
        )


class _Parent:
    """The supervisor: its output and log, and the last valid state, with which new workers begin."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._policy_file = PolicyFileWatch(shared.files, shared.rules, self._use, self._reloaded, self._admits)
        self._events = self._events_of(shared.options)
        # The set that is loaded in a trial now.
        self._trial: tuple[bytes, Trial] | None = None
        self._shadow_file: PolicyFileWatch | None = None
        if shared.shadow is not None:
            self._shadow_file = PolicyFileWatch(
                shared.shadow.files,
                shared.shadow.rules or Rules(shared.rules.ruleset, ""),
                self._use_shadow,
                self._shadow_reloaded,
                self._admits_shadow,
            )

    def run(self) -> int:
        shared = self._shared
        shared.report_start()
        if shared.shadow is not None and shared.shadow.rules is not None:
            self._shadow_reloaded(Reload(shared.shadow.rules.generation))
        for warning in shared.certificate.warnings:
            shared.log.event("warning", warning)
        # Objects that exist now live as long as the process. Collections skip them, so workers do not copy their pages.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_COLLECT_AFTER)
        listeners = [shared.admission, shared.health]
        if shared.hand_over:
            listeners.append(shared.hand_over.listener)
        supervisor = Supervisor(
            lambda number: _run_process(number, shared),
            shared.board,
            listeners,
            shared.options.drain_seconds,
            self._ended,
        )
        try:
            return supervisor.run(shared.board.rows, self._announce, self._tick, self._reload)
        finally:
            self._stop_trial()
            if self._events is not None:
                self._events.close()

    def _events_of(self, options: ServeOptions) -> PolicyEvents | None:
        if options.cluster is None or not options.namespace:
            return None
        return PolicyEvents(
            options.cluster, options.namespace, options.service, now, self._leave_sockets, self._failed_event
        )

    def _leave_sockets(self) -> None:
        # The kernel accepts connections as long as any process has the listener open.
        self._shared.admission.close()
        self._shared.health.close()

    def _failed_event(self, reason: str) -> None:
        self._shared.log.event("warning", "no Kubernetes Event was created", reason=reason)

    def _announce(self) -> None:
        shared = self._shared
        url = _url("https", shared.options, shared.admission)
        lines = [
            f"gpugate {__version__} with {_summary(shared.rules.ruleset)}",
            self._registration_text(url),
            f"{HEALTH}{_url('http', shared.options, shared.health)}",
            f"{READY}{url}",
        ]
        if shared.options.cluster is None:
            lines.insert(1, "No cluster to watch: policies that need other objects are not evaluated.")
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()

    def _registration_text(self, url: str) -> str:
        options = self._shared.options
        if options.keeping is not None:
            return certificates_help(options.keeping)
        created = self._shared.certificate.identity.authority is not None
        return registration_help(
            url,
            created=created,
            ca_file=options.ca_file,
            policy_file=options.policy_file,
            cluster=options.identity,
        )

    def _tick(self) -> None:
        self._policy_file.poll()
        if self._shadow_file is not None:
            self._shadow_file.poll()
        for policy, is_off in self._shared.guarding.switched():
            self._shared.metrics.switched(policy, off=is_off)
            text = "policy switched off after repeated failures" if is_off else "policy switched on again"
            self._shared.log.event("error" if is_off else "info", text, policy=policy)
            if self._events is not None:
                self._events.create(policy, is_off=is_off)
        self._log_certificate(self._shared.poll_certificate())

    def _reload(self) -> None:
        self._policy_file.reload()
        if self._shadow_file is not None:
            self._shadow_file.reload()
        self._log_certificate(self._shared.poll_certificate(force=True))

    def _admits(self, content: RulesContent) -> bool:
        if content.sources and not self._shared.may_load(content) and not self._is_passed(content):
            return False
        self._shared.guarding.guard.accept(content.own)
        return True

    def _is_passed(self, content: RulesContent) -> bool:
        """Start a trial of a set, or look for its result; meanwhile the supervisor goes on."""
        if self._trial is None or self._trial[0] != content.own:
            self._stop_trial()
            self._trial = content.own, Trial(lambda: self._shared.files.load(content))
        try:
            is_passed = self._trial[1].is_passed(_TRIAL_WAIT_SECONDS)
        except GpugateError:
            self._trial = None
            raise
        if is_passed:
            self._trial = None
        return is_passed

    def _stop_trial(self) -> None:
        if self._trial is not None:
            self._trial[1].stop()
            self._trial = None

    def _use(self, rules: Rules) -> None:
        self._shared.rules = rules
        self._shared.metrics.know(rules.ruleset.catalog)

    def _reloaded(self, reload: Reload) -> None:
        self._shared.metrics.reloaded(reload.generation, not reload.error)
        if reload.error:
            self._shared.log.event(
                "error",
                "policy file invalid, the last valid one stays in force",
                generation=reload.generation,
                error=reload.error,
            )
        else:
            self._shared.log.event("info", "policy file in force", generation=reload.generation)

    def _admits_shadow(self, content: RulesContent) -> bool:
        _check_own(content, self._shared.guarding)
        return True

    def _use_shadow(self, rules: Rules) -> None:
        if self._shared.shadow is not None:
            self._shared.shadow.rules = rules

    def _shadow_reloaded(self, reload: Reload) -> None:
        self._shared.metrics.shadow_reloaded(ok=not reload.error)
        if self._shared.shadow is not None:
            self._shared.shadow.error = reload.error
        if reload.error:
            text = "shadow policy file invalid, the last valid one stays in use, if any"
            self._shared.log.event("error", text, generation=reload.generation, error=reload.error)
        else:
            self._shared.log.event("info", "shadow policy file in use", generation=reload.generation)

    def _log_certificate(self, error: str | None) -> None:
        if error:
            self._shared.log.event("error", "certificate invalid, the last valid one stays in use", error=error)
        elif error is not None:
            expires = self._shared.certificate.identity.not_after.isoformat()
            self._shared.log.event("info", "certificate in use", expires=expires)

    def _ended(self, worker_exit: WorkerExit) -> None:
        self._shared.metrics.forget(worker_exit.pid)
        self._shared.metrics.worker_restarted()
        policy = self._shared.guarding.died(worker_exit.pid)
        called = {"policy": policy} if policy else {}
        self._shared.log.event(
            "error", "worker ended, another is started", pid=worker_exit.pid, exit_code=worker_exit.exit_code, **called
        )


def _run_process(number: int, shared: Shared) -> None:
    """Run one process: a worker, the process for expensive reviews if there is one, or the keeper."""
    options = shared.options
    if number < options.workers:
        run_worker(number, shared)
        return
    if shared.hand_over and number == options.workers:
        run_expensive(number, shared, shared.hand_over)
        return
    assert options.keeping is not None  # noqa: S101 -- for the type checker: only then there is another process
    # Only the keeper needs these imports.
    from gpugate.webhook.admission.keeper import run_keeper  # noqa: PLC0415 -- see above

    run_keeper(number, shared, options.keeping)


def _hand_over(folder: Path) -> HandOver:
    try:
        return HandOver(folder / "expensive-reviews")
    except OSError as error:
        raise ServeError(f"cannot open a socket in {folder}: {error.strerror or error}: set TMPDIR") from None


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
    return f"{len(ruleset.rules)} policies ({shares}){_of_cluster(ruleset.config)}"


def _of_cluster(config: PolicyConfig) -> str:
    """Return which entries of `clusters` apply; empty for a policy file without them."""
    if not isinstance(config, ClusterConfig):
        return ""
    labels = labels_of(config.platform.cluster) if config.platform.cluster else {}
    cluster = ", ".join(f"{label}={value}" for label, value in labels.items())
    applied = ", ".join(f"clusters[{index}]" for index in config.applied) or "no entry of clusters"
    return f"; cluster {cluster}: {applied} {'apply' if len(config.applied) > 1 else 'applies'}"
