"""What goes wrong between this process and an API server.

GpugateError
└── ClusterError             a user can mend it: no configuration, an unknown context
CallError                    one call failed; the next may not
├── UnreachableError         there was no answer, or it broke off
├── ApiError                 the API server answered with an error
├── NotServedError           the API server has no such kind
├── ShortWatchError          a watch ended at once and had nothing to say
└── HistoryChangedError      resource versions went back, as after a restored backup of etcd
"""

from __future__ import annotations

from typing import Final

from gpugate.policies.engine.config import GpugateError


class ClusterError(GpugateError):
    """The cluster to look at is not configured, or not so that it can be used."""


class CallError(Exception):
    """A call to the API server failed; `retry_after` is how many seconds the server asks to wait, at least."""

    retry_after: float = 0.0


class UnreachableError(CallError):
    """There was no answer, or it broke off; the text says why and what to look at."""


class NotServedError(CallError):
    """The API server does not serve a kind, in no version that is known here."""


class ShortWatchError(CallError):
    """A watch ended within a second and without an event."""


class HistoryChangedError(CallError):
    """A resource version is older than one seen before."""


class ApiError(CallError):
    """The API server answered with an error: a `metav1.Status`, or an HTTP status alone.

    `causes` are the reasons of its details, `resource` is the plural that they are about.
    """

    causes: frozenset[str] = frozenset()
    resource: str = ""

    def __init__(self, code: int, reason: str, message: str, retry_after: float = 0.0, token: str = "") -> None:
        super().__init__(f"{code} {reason}: {message}" if message else f"{code} {reason}".strip())
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        # Of a list whose page is gone: where it can go on, from what is stored now.
        self.token = token

    @classmethod
    def of(cls, status: object, code: int = 0, retry_after: float = 0.0) -> ApiError:
        """Read a Status; `code` and `retry_after` are what the HTTP answer said, where there is one."""
        members = status if isinstance(status, dict) else {}
        details = members.get("details")
        details = details if isinstance(details, dict) else {}
        causes = details.get("causes")
        written, seconds = members.get("code"), details.get("retryAfterSeconds")
        metadata = members.get("metadata")
        token = metadata.get("continue") if isinstance(metadata, dict) else None
        error = cls(
            written if isinstance(written, int) else code,
            str(members.get("reason", "")),
            str(members.get("message", "")),
            max(retry_after, float(seconds) if isinstance(seconds, int) else 0.0),
            token if isinstance(token, str) else "",
        )
        if isinstance(causes, list):
            error.causes = frozenset(str(each.get("reason")) for each in causes if isinstance(each, dict))
        error.resource = str(details.get("kind", ""))
        return error

    @property
    def expired(self) -> bool:
        """The resource version or continue token is too old."""
        return self.code == 410 or self.reason in {"Expired", "Gone"}

    @property
    def from_the_future(self) -> bool:
        """The resource version is newer than any that this server knows."""
        return _TOO_LARGE in self.causes

    @property
    def in_ending_namespace(self) -> bool:
        """Nothing can be created in the namespace, which is being deleted or gone.

        Source: Kubernetes v1.36 `staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go`.
        """
        return _TERMINATING in self.causes or (self.code == 404 and self.resource == "namespaces")


# k8s.io/apimachinery pkg/apis/meta/v1 types.go CauseTypeResourceVersionTooLarge, v0.36.
_TOO_LARGE: Final = "ResourceVersionTooLarge"
# k8s.io/api core/v1 types.go NamespaceTerminatingCause, v0.36.
_TERMINATING: Final = "NamespaceTerminating"
