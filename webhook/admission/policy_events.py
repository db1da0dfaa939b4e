"""Kubernetes Events about policies outside the library that are switched off after repeated failures, or on again.

The supervisor has no connection to the cluster. Each Event is created by a process of its own, which ends after that.
"""

from __future__ import annotations

import multiprocessing
import signal
import socket
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.config import GpugateError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

    from gpugate.webhook.cluster.options import ClusterOptions

_API: Final = "events.k8s.io/v1"
_CONTROLLER: Final = "gpugate"
# `k8s.io/kubernetes` pkg/apis/core/validation/events.go, v1.36.
_LONGEST_INSTANCE: Final = 128
_READ_SECONDS: Final = 5.0
_MOST_SECONDS: Final = 10.0


def event(policy: str, namespace: str, service: str, now: dt.datetime, *, is_off: bool) -> dict[str, Any]:
    """Return an Event of `events.k8s.io/v1` on the Service of the webhook.

    Args:
        policy: the id of the policy.
        namespace: the namespace of the webhook.
        service: the Service of the webhook. Pods of the host network do not know their names.
        now: the time, in UTC.
        is_off: whether the policy was switched off; otherwise it was switched on.
    """
    if is_off:
        kind, action, reason = "Warning", "SwitchOff", "PolicySwitchedOff"
        note = f"policy {policy} failed repeatedly and is not evaluated for some minutes; the log of the webhook has the errors"
    else:
        kind, action, reason = "Normal", "SwitchOn", "PolicySwitchedOn"
        note = f"policy {policy} is evaluated again"
    return {
        "apiVersion": _API,
        "kind": "Event",
        "metadata": {"generateName": f"{service}-policy-", "namespace": namespace},
        "eventTime": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}",
        "reportingController": _CONTROLLER,
        "reportingInstance": socket.gethostname()[:_LONGEST_INSTANCE] or _CONTROLLER,
        "action": action,
        "reason": reason,
        "regarding": {"apiVersion": "v1", "kind": "Service", "namespace": namespace, "name": service},
        "type": kind,
        "note": note,
    }


class PolicyEvents:
    """Creates Events; used by a process without threads.

    Args:
        cluster: the cluster.
        namespace: the namespace of the webhook.
        service: the Service of the webhook.
        now: returns the time, in UTC.
        begin: called in each process that creates an Event, before it does so.
        failed: called in such a process with the reason why an Event cannot be created.
    """

    def __init__(
        self,
        cluster: ClusterOptions,
        namespace: str,
        service: str,
        now: Callable[[], dt.datetime],
        begin: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._namespace, self._service = namespace, service
        self._now = now
        self._begin, self._failed = begin, failed
        self._running: list[multiprocessing.process.BaseProcess] = []

    def create(self, policy: str, *, is_off: bool) -> None:
        """Start to create an Event on a policy that was switched off or on."""
        self._running = [process for process in self._running if process.is_alive()]
        written = event(policy, self._namespace, self._service, self._now(), is_off=is_off)
        process = multiprocessing.get_context("fork").Process(target=self._run, args=(written,), daemon=True)
        process.start()
        self._running.append(process)

    def close(self) -> None:
        """End the processes that still run."""
        for process in self._running:
            process.kill()
            process.join()

    def _run(self, written: dict[str, Any]) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.setitimer(signal.ITIMER_REAL, _MOST_SECONDS)
        self._begin()
        from gpugate.webhook.cluster.connection import connect  # noqa: PLC0415 -- imports the Kubernetes client
        from gpugate.webhook.cluster.errors import CallError  # noqa: PLC0415 -- as above

        try:
            connection = connect(self._cluster, _READ_SECONDS)
            connection.create(f"/apis/{_API}/namespaces/{self._namespace}/events", written)
        except (CallError, GpugateError) as error:
            self._failed(str(error))
