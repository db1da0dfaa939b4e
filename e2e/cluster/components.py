"""The components of a control plane as commands: flags of Kubernetes v1.36, etcd v3.6 and kwok v0.8."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.certificates import PROXY, Certificates
from cluster.component_files import written_audit_policy, written_stages
from cluster.kubeconfig import write_kubeconfig
from cluster.ports import HOST, free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.certificates import Files

# All that need no cloud.
_CONTROLLERS = "*,-node-ipam-controller,-service-lb-controller,-node-route-controller,-cloud-node-lifecycle-controller"
# Off by default in v1.36 and not gone (k8s.io/api v0.36 says removed in v1.38): so are objects of these versions judged.
_OLD_VERSIONS = "resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true"


@dataclass(frozen=True)
class Component:
    """A program, its flags, and the URL that says with 200 that it is ready."""

    name: str
    health: str
    flags: tuple[str, ...]


class Components:
    """Everything on free ports of loopback, with certificates, data and configuration in one empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificates = Certificates(_made(folder / "certificates"))
        self.admin = self.certificates.client("admin", "system:masters")
        self.audit_log = folder / "audit.log"
        names = ("etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
        self._ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.url = f"https://{HOST}:{self._ports['kube-apiserver']}"

    def kubeconfig(self, name: str, credentials: Files) -> Path:
        """Write how to reach the API server with a client certificate."""
        return write_kubeconfig(self.folder / f"{name}.kubeconfig", self.url, self.certificates.authority, credentials)

    def etcd(self) -> Component:
        """Return the store, whose data need not survive a crash."""
        client, peer = (f"http://{HOST}:{self._ports[name]}" for name in ("etcd", "etcd-peer"))
        flags = (
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        return Component("etcd", f"{client}/readyz", flags)

    def api_server(self, *more: str) -> Component:
        """Return the API server, with RBAC and every admission plugin that is on by default, and with more flags."""
        files = self.certificates
        flags = (
            f"--etcd-servers=http://{HOST}:{self._ports['etcd']}",
            *self._serving("kube-apiserver"),
            f"--advertise-address={HOST}",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--client-ca-file={files.authority}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",  # as every real cluster has it
            "--endpoint-reconciler-type=none",
            f"--runtime-config={_OLD_VERSIONS}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={files.service_account_public_key}",
            f"--service-account-signing-key-file={files.service_account_key}",
            f"--audit-policy-file={written_audit_policy(self.folder)}",
            f"--audit-log-path={self.audit_log}",
            *self._aggregating(),
            *more,
        )
        return Component("kube-apiserver", f"{self.url}/readyz", flags)

    def controller_manager(self) -> Component:
        """Return the controllers."""
        return self._client(
            "kube-controller-manager",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.certificates.service_account_key}",
            f"--root-ca-file={self.certificates.authority}",
            f"--controllers={_CONTROLLERS}",
        )

    def scheduler(self) -> Component:
        """Return the scheduler."""
        return self._client("kube-scheduler")

    def kwok(self) -> Component:
        """Return what plays the kubelets: every node becomes Ready, and what is bound to it runs."""
        server = f"{HOST}:{self._ports['kwok']}"
        flags = (
            f"--kubeconfig={self.kubeconfig('admin', self.admin)}",
            f"--config={written_stages(self.folder)}",
            "--manage-all-nodes=true",
            "--cidr=10.1.0.0/16",
            f"--node-ip={HOST}",
            "--node-lease-duration-seconds=40",
            f"--server-address={server}",
        )
        return Component("kwok", f"http://{server}/readyz", flags)

    def _client(self, name: str, *flags: str) -> Component:
        kubeconfig = self.kubeconfig(name, self.certificates.client(f"system:{name}"))
        common = (
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            *self._serving(name),
            "--leader-elect=false",
        )
        return Component(name, f"https://{HOST}:{self._ports[name]}/healthz", (*common, *flags))

    def _aggregating(self) -> tuple[str, ...]:
        """Return what lets the API server pass requests on to the servers of APIServices."""
        files = self.certificates
        return (
            f"--requestheader-client-ca-file={files.proxy_authority}",
            f"--requestheader-allowed-names={PROXY}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={files.proxy.certificate}",
            f"--proxy-client-key-file={files.proxy.key}",
        )

    def _serving(self, name: str) -> tuple[str, ...]:
        files = self.certificates.server
        return (
            f"--bind-address={HOST}",
            f"--secure-port={self._ports[name]}",
            f"--tls-cert-file={files.certificate}",
            f"--tls-private-key-file={files.key}",
            f"--cert-dir={_made(self.folder / name)}",
        )


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
