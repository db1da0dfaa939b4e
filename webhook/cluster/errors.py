"""Errors of calls to an API server.

GpugateError
└── ClusterError             a user can fix it: no kubeconfig, an unknown context
CallError                    one call failed; the next may succeed
├── UnreachableError         the response is missing or incomplete
├── ApiError                 the API server returned an error
├── NotServedError           the API server does not serve the kind
├── ShortWatchError          a watch ended within a second, without an event
└── HistoryChangedError      resource versions decreased, such as after a restore of etcd
"""

from __future__ import annotations

from typing import Final

from gpugate.policies.engine.config import GpugateError


class ClusterError(GpugateError):
    """The connection to the cluster is not configured, or the configuration is unusable."""


class CallError(Exception):
    """A call to the API server failed; `retry_after` is the minimum wait in seconds that the server requests."""

    retry_after: float = 0.0


class UnreachableError(CallError):
    """The response is missing or incomplete; the text says why and what to check."""


class NotServedError(CallError):
    """The API server does not serve a kind in a supported version."""


class ShortWatchError(CallError):
    """A watch ended within a second, without an event."""


class HistoryChangedError(CallError):
    """A resource version is older than an earlier one."""


class ApiError(CallError):
    """The API server returned an error: a `metav1.Status`, or only an HTTP status.

    `causes` are the reasons in its details, `resource` is the plural name of the kind in its details.
    """

    causes: frozenset[str] = frozenset()
    resource: str = ""

    def __init__(self, code: int, reason: str, message: str, retry_after: float = 0.0, token: str = "") -> None:
        super().__init__(f"{code} {reason}: {message}" if message else f"{code} {reason}".strip())
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        # The continue token for an expired list; it continues with the current objects.
        self.token = token

    @classmethod
    def of(cls, status: object, code: int = 0, retry_after: float = 0.0) -> ApiError:
        """Convert a Status; `code` and `retry_after` come from the HTTP response, if there is one."""
        members = status if isinstance(status, dict) else {}
        details = members.get("details")
        details = details if isinstance(details, dict) else {}
        causes = details.get("causes")
        status_code, seconds = members.get("code"), details.get("retryAfterSeconds")
        metadata = members.get("metadata")
        token = metadata.get("continue") if isinstance(metadata, dict) else None
        error = cls(
            status_code if isinstance(status_code, int) else code,
            str(members.get("reason", "")),
            str(members.get("message", "")),
            max(retry_after, float(seconds) if isinstance(seconds, int) else 0.0),
            token if isinstance(token, str) else "",
        )
        if isinstance(causes, list):
            error.causes = frozenset(str(cause.get("reason")) for cause in causes if isinstance(cause, dict))
        error.resource = str(details.get("kind", ""))
        return error

    @property
    def expired(self) -> bool:
        """Whether the resource version or continue token is too old."""
        return self.code == 410 or self.reason in {"Expired", "Gone"}

    @property
    def is_too_new(self) -> bool:
        """Whether the resource version is newer than the newest one of this server."""
        return _TOO_LARGE in self.causes

    @property
    def in_ending_namespace(self) -> bool:
        """Whether the namespace is being deleted or does not exist, so no object can be created in it.

        Source: Kubernetes v1.36 `staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go`.
        """
        return _TERMINATING in self.causes or (self.code == 404 and self.resource == "namespaces")


# k8s.io/apimachinery pkg/apis/meta/v1 types.go CauseTypeResourceVersionTooLarge, v0.36.
_TOO_LARGE: Final = "ResourceVersionTooLarge"
# k8s.io/api core/v1 types.go NamespaceTerminatingCause, v0.36.
_TERMINATING: Final = "NamespaceTerminating"
