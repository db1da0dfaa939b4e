"""Read a kubeconfig, or the ServiceAccount of a Pod, with the official client."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from gpugate import __version__
from gpugate.webhook.cluster.errors import ClusterError
from gpugate.webhook.cluster.options import DEFAULT_KUBECONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubernetes.client import ApiClient

    from gpugate.webhook.cluster.options import ClusterOptions

# One connection for each watched kind, and some for other calls.
POOL_SIZE: Final = 64


def check(options: ClusterOptions) -> None:
    """Validate the kubeconfig and its context, or the ServiceAccount, without a call or a credential plugin.

    For a process that does not use the client itself. It imports the client, so that processes forked from this one
    share the memory.

    Raises:
        ClusterError: the kubeconfig or ServiceAccount is missing or unusable.
    """
    # Importing the client takes 160 ms and 11 MB, which commands without a cluster do not need.
    from kubernetes import client, config  # noqa: PLC0415
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger  # noqa: PLC0415

    with _convert_errors(options):
        if options.in_cluster:
            config.load_incluster_config(client_configuration=client.Configuration())
        else:
            merged = KubeConfigMerger(_file(options)).config
            if merged is None:
                raise config.ConfigException("No configuration found")
            KubeConfigLoader(config_dict=merged, active_context=options.context)


def load(options: ClusterOptions) -> ApiClient:
    """Create a client for a cluster; no call is made yet, but a credential plugin can run.

    Call it in the process that uses the client, after the last fork: the client writes certificates and keys of the
    kubeconfig to temporary files, and removes them when the calling process ends.

    Raises:
        ClusterError: the kubeconfig or ServiceAccount is missing or unusable.
    """
    from kubernetes import client, config  # noqa: PLC0415 -- as above

    configuration = client.Configuration()
    with _convert_errors(options):
        if options.in_cluster:
            config.load_incluster_config(client_configuration=configuration)
        else:
            config.load_kube_config(
                config_file=_file(options),
                context=options.context,
                client_configuration=configuration,
                persist_config=False,
            )
    configuration.connection_pool_maxsize = POOL_SIZE
    configuration.keep_alive = True
    api_client = client.ApiClient(configuration)
    api_client.user_agent = f"gpugate/{__version__}"
    return api_client


def context_names(options: ClusterOptions) -> tuple[str, ...]:
    """Return the names of all contexts of a kubeconfig, in its order.

    Raises:
        ClusterError: the kubeconfig is missing or unusable.
    """
    from kubernetes.config import list_kube_config_contexts  # noqa: PLC0415 -- as above

    with _convert_errors(options):
        contexts, _ = list_kube_config_contexts(_file(options))
        return tuple(str(context["name"]) for context in contexts)


def _file(options: ClusterOptions) -> str:
    return str(options.kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG)


@contextmanager
def _convert_errors(options: ClusterOptions) -> Iterator[None]:
    from kubernetes.config import ConfigException  # noqa: PLC0415 -- as above

    try:
        yield
    except ConfigException as error:
        raise ClusterError(_reason(options, str(error))) from None
    except Exception as error:  # noqa: BLE001 -- the client raises arbitrary errors on an invalid file
        # The text can contain a line of the file, so the message contains only the name of the error.
        raise ClusterError(
            f"kubeconfig {_file(options)}: unreadable ({type(error).__name__}): {_remedy(options)}"
        ) from None


def _reason(options: ClusterOptions, message: str) -> str:
    if options.in_cluster:
        detail = message.rstrip(".").lower()
        return f"not in a Pod with a ServiceAccount token ({detail}): set automountServiceAccountToken, or {_remedy(options)}"
    file = _file(options)
    if "No configuration found" in message:
        return f"no kubeconfig at {file}: {_remedy(options)}"
    if options.context and f"name {options.context} in" in message and "/contexts" in message:
        return f"kubeconfig {file} has no context {options.context}: `kubectl config get-contexts` lists the contexts"
    detail = message.removeprefix("Invalid kube-config").removeprefix(" file").removeprefix(". ")
    return f"kubeconfig {file} is unusable ({detail}): {_remedy(options)}"


def _remedy(options: ClusterOptions) -> str:
    alternative = f", or {options.alternative}" if options.alternative else ""
    return f"choose a kubeconfig with --kubeconfig FILE{alternative}"


def context_name(options: ClusterOptions) -> str:
    """Return the name of the context, by which users know the cluster; empty in a Pod.

    Raises:
        ClusterError: the kubeconfig is missing or unusable.
    """
    if options.in_cluster or options.context:
        return options.context or ""
    from kubernetes.config import list_kube_config_contexts  # noqa: PLC0415 -- as above

    with _convert_errors(options):
        _, current = list_kube_config_contexts(_file(options))
        return str(current["name"])
