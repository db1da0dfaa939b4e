"""Reads a kubeconfig, or the ServiceAccount of a Pod, with the official client."""

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

# One connection for each kind that is watched, and some for what comes between.
POOL_SIZE: Final = 64
_MEND: Final = "name another with --kubeconfig, or run without a cluster with --no-cluster"


def check(options: ClusterOptions) -> None:
    """See whether there is a configuration, and the context in it; nothing is made, sent or run.

    For a process that will not use the client itself. It imports the client, so that processes forked from this one
    share the memory.

    Raises:
        ClusterError: there is no configuration, or it cannot be used.
    """
    # The client costs 160 ms and 11 MB to import, which no command without a cluster shall pay.
    from kubernetes import client, config  # noqa: PLC0415
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger  # noqa: PLC0415

    with _explained(options):
        if options.in_cluster:
            config.load_incluster_config(client_configuration=client.Configuration())
        else:
            found = KubeConfigMerger(_file(options)).config
            if found is None:
                raise config.ConfigException("No configuration found")
            KubeConfigLoader(config_dict=found, active_context=options.context)


def load(options: ClusterOptions) -> ApiClient:
    """Make a client of the cluster that the options name; nothing is sent yet, but a credential plugin may run.

    Certificates and keys that stand in the kubeconfig itself are written to temporary files, which go when the
    process ends that called this: call it in the process that uses the client, after the last fork.

    Raises:
        ClusterError: there is no configuration, or it cannot be used.
    """
    from kubernetes import client, config  # noqa: PLC0415 -- as above

    configuration = client.Configuration()
    with _explained(options):
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
    made = client.ApiClient(configuration)
    made.user_agent = f"gpugate/{__version__}"
    return made


def _file(options: ClusterOptions) -> str:
    return str(options.kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG)


@contextmanager
def _explained(options: ClusterOptions) -> Iterator[None]:
    from kubernetes.config import ConfigException  # noqa: PLC0415 -- as above

    try:
        yield
    except ConfigException as error:
        raise ClusterError(_reason(options, str(error))) from None
    except Exception as error:  # noqa: BLE001 -- on a broken file the client raises whatever it stumbles over
        # The text may hold a line of the file, so only the name of the error is told.
        raise ClusterError(f"kubeconfig {_file(options)}: not readable ({type(error).__name__}): {_MEND}") from None


def _reason(options: ClusterOptions, message: str) -> str:
    if options.in_cluster:
        detail = message.rstrip(".").lower()
        return f"this is no Pod with a ServiceAccount ({detail}): set automountServiceAccountToken, or {_MEND}"
    file = _file(options)
    if "No configuration found" in message:
        return f"there is no kubeconfig at {file}: {_MEND}"
    if options.context and f"name {options.context} in" in message and "/contexts" in message:
        return f"kubeconfig {file} has no context {options.context}: `kubectl config get-contexts` lists them"
    detail = message.removeprefix("Invalid kube-config").removeprefix(" file").removeprefix(". ")
    return f"kubeconfig {file} cannot be used ({detail}): {_MEND}"


def context_name(options: ClusterOptions) -> str:
    """Name the context that the options choose, as people know the cluster; empty in a Pod.

    Raises:
        ClusterError: there is no configuration, or it cannot be used.
    """
    if options.in_cluster or options.context:
        return options.context or ""
    from kubernetes.config import list_kube_config_contexts  # noqa: PLC0415 -- as above

    with _explained(options):
        _, current = list_kube_config_contexts(_file(options))
        return str(current["name"])
