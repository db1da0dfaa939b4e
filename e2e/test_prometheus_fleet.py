"""Two clusters, each with a webhook, an audit and a Prometheus, and a third Prometheus that has the metrics of both.

The first cluster is the control plane of the tests; its Prometheus writes to the third one, and gives its series external labels.
The second is a webhook without a cluster; the third Prometheus federates the one that scrapes it, and targets have the labels.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
import uuid
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cluster.connections import Connections
from cluster.kept_webhook import kept_webhook
from cluster.ports import HOST
from cluster.process import Process
from cluster.prometheus import configured_prometheus, running_prometheus
from documentation.blocks import ROOT, blocks_of
from gpu_history import cluster, history
from violating import node_pool
from webhook_process import GPUGATE

import tools
from gpugate.webhook.admission.serve import HEALTH, READY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cluster.api import Api
    from cluster.control_plane import ControlPlane

Json = dict[str, Any]
FILES = Path(__file__).parents[1] / "charts" / "gpugate" / "files"
PAGE = ROOT / "docs" / "how-to" / "fleet-metrics.md"
DASHBOARDS = [json.loads((FILES / name).read_text()) for name in ("dashboard.json", "fleet-dashboard.json")]
PANELS = {
    f"{dashboard['title']}: {panel['title']}": re.sub(r"\$\w+", ".*", panel["targets"][0]["expr"])
    for dashboard in DASHBOARDS
    for panel in dashboard["panels"]
}
ALERTS = [alert["expr"] for alert in yaml.safe_load((FILES / "alerts.yaml").read_text())["alerts"]]
PATIENCE_SECONDS = 300
# Without series as long as nothing is wrong.
QUIET = {"cluster:gpugate_build_info:silent", "cluster_reason:gpugate_webhook_config_drift:max"}
HEAD = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
POLICIES = f'{HEAD}policies: {{"*/*": {{mode: warn}}, nodepools/missing-gpu-limit: {{mode: audit}}}}\n'
SHADOW = f'{HEAD}policies: {{"*/*": {{mode: enforce}}}}\n'
EVERY_SECOND = {"scrape_interval": "1s", "evaluation_interval": "1s"}


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    try:
        tools.path("prometheus")
    except tools.ToolsError as error:
        pytest.skip(f"{error}; `make e2e` does without it, because building it takes minutes")


@contextmanager
def served_pages(pages: Mapping[str, Callable[[], str]]) -> Iterator[str]:
    """Serve texts on loopback, path -> what returns the text; return host and port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages[self.path]().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name in the library
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{HOST}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The metrics of an audit of each cluster, as the CronJob writes them."""
    folder = tmp_path_factory.mktemp("audits")
    end = time.time()
    dump = cluster(end)
    dump["items"].append(node_pool())
    (folder / "dump.json").write_text(json.dumps(dump))
    texts: dict[str, str] = {}
    (folder / "history").mkdir()
    with running_prometheus(folder / "history", history(end)) as url:
        for name, region in (("one", "eu"), ("two", "us")):
            command = [
                *GPUGATE,
                "audit",
                "--from",
                str(folder / "dump.json"),
                "--complete-context",
                "--as-mode=enforce",
            ]
            command += [f"--cluster-name={name}", f"--cluster-region={region}", f"--prometheus={url}"]
            command += ["--idle-budget=1000000", f"--output=prometheus={folder / name}"]
            ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603 -- our own program
            assert ran.returncode == 0, ran.stderr
            texts[name] = (folder / name).read_text()
    return texts


@contextmanager
def webhook_of_two(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Run a webhook; return the address of its metrics, and what sends it a review."""
    files = {"policy.yaml": POLICIES, "shadow.yaml": SHADOW}
    for name, text in files.items():
        (folder / name).write_text(text)
    command = [*GPUGATE, "serve", f"--host={HOST}", "--port=0", "--health-port=0", "--drain=0", "--workers=1"]
    command += ["--no-cluster", f"--ca-file={folder / 'ca.crt'}", "--cluster-name=two", "--cluster-region=us"]
    command += [f"--policy-file={folder / 'policy.yaml'}", f"--shadow-policy-file={folder / 'shadow.yaml'}"]
    output = folder / "stdout"
    process = Process("gpugate serve", command, folder / "log", None, output)
    try:
        process.wait_until(lambda: READY in output.read_text())
        said = {
            label: next(line.removeprefix(label) for line in output.read_text().splitlines() if line.startswith(label))
            for label in (READY, HEALTH)
        }
        with closing(Connections(said[READY], folder / "ca.crt")) as connections:
            yield (
                urllib.parse.urlsplit(said[HEALTH]).netloc,
                lambda: connections.request("POST", "/validate", review(node_pool())),
            )
    finally:
        process.stop()


def review(obj: Json) -> Json:
    group, version = obj["apiVersion"].split("/")
    request = {
        "uid": "e2e",
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "resource": {"group": group, "version": version, "resource": "nodepools"},
        "name": obj["metadata"]["name"],
        "operation": "CREATE",
        "userInfo": {"username": "e2e"},
        "object": obj,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


@contextmanager
def unanswered_entry(api: Api, name: str) -> Iterator[Json]:
    """Register an entry that nobody answers, with the failure policy Ignore; return an object that is sent to it."""
    entry = {
        "name": "pools.validate.gpugate.dev",
        "clientConfig": {"url": f"https://{HOST}:1/validate"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "objectSelector": {"matchLabels": {"unanswered": name}},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [entry],
    }
    assert api.create(configuration).ok
    try:
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default", "labels": {"unanswered": name}},
        }
    finally:
        api.delete(configuration)


def asked(url: str, query: str) -> list[Json]:
    """Return the series of an instant query.

    Raises:
        HTTPError: Prometheus refuses it.
    """
    with urllib.request.urlopen(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=60) as answer:  # noqa: S310 -- http on loopback
        result: list[Json] = json.loads(answer.read())["data"]["result"]
    return result


def unhealthy_rules(url: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/api/v1/rules", timeout=60) as answer:  # noqa: S310 -- http on loopback
        groups = json.loads(answer.read())["data"]["groups"]
    return [
        f"{rule['name']}: {rule.get('lastError')}"
        for group in groups
        for rule in group["rules"]
        if rule["health"] != "ok"
    ]


def until(true: Callable[[], object], what: Callable[[], object]) -> None:
    """Ask until it is so."""
    latest = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < latest, what()
        time.sleep(0.2)


def documented_jobs() -> list[Json]:
    """Return the jobs of the page on metrics of many clusters."""
    shown = [yaml.safe_load(block.text) for block in blocks_of(PAGE) if "scrape_configs:" in block.text]
    return [job for each in shown for job in each["scrape_configs"]]


def test_every_panel_and_rule_has_the_series_of_two_clusters(
    api: Api, control_plane: ControlPlane, audits: Mapping[str, str], tmp_path: Path
) -> None:
    name = f"fleet-{uuid.uuid4().hex[:8]}"
    rules = tmp_path / "recording-rules.yaml"
    shutil.copy(FILES / rules.name, rules)
    shutil.copy(FILES / "fleet-rules.yaml", tmp_path)
    (federation,) = documented_jobs()
    folders = {each: tmp_path / each for each in ("kept", "webhook", "one", "two", "central")}
    for folder in folders.values():
        folder.mkdir()
    with ExitStack() as stack, ExitStack() as second:
        kept = stack.enter_context(kept_webhook(api, control_plane, folders["kept"], name, replicas=1))
        two, send = second.enter_context(webhook_of_two(folders["webhook"]))
        unanswered = stack.enter_context(unanswered_entry(api, f"{name}-unanswered"))
        pages = {f"/{each}": lambda each=each: audits[each] for each in audits}
        pages |= {"/kept": kept.health[0].exposition, "/api-server": lambda: metrics_of(api)}
        served = stack.enter_context(served_pages(pages))

        of_two = second.enter_context(configured_prometheus(folders["two"], {
            "global": EVERY_SECOND,
            "rule_files": [str(rules)],
            "scrape_configs": [
                # As the ServiceMonitor of the chart: the target has the labels.
                {"job_name": "gpugate", "static_configs": [{"targets": [two], "labels": {"cluster": "two", "region": "us"}}]},
                # As a node exporter whose targets have the labels too.
                {"job_name": "textfile", "metrics_path": "/two", "honor_labels": True,
                 "static_configs": [{"targets": [served], "labels": {"cluster": "two", "region": "us"}}]},
            ],
        }))  # fmt: skip
        central = stack.enter_context(configured_prometheus(folders["central"], {
            "global": EVERY_SECOND,
            "rule_files": [str(tmp_path / "fleet-rules.yaml")],
            "scrape_configs": [{
                **federation,
                # The dashboard of one cluster reads these too.
                "params": {"match[]": [*federation["params"]["match[]"], '{__name__=~"gpugate_.*"}']},
                "static_configs": [{"targets": [urllib.parse.urlsplit(of_two).netloc]}],
            }],
        }, ["--web.enable-remote-write-receiver"]))  # fmt: skip
        of_one = stack.enter_context(configured_prometheus(folders["one"], {
            "global": {**EVERY_SECOND, "external_labels": {"cluster": "one", "region": "eu"}},
            "rule_files": [str(rules)],
            "remote_write": [{"url": f"{central}/api/v1/write"}],
            "scrape_configs": [
                {"job_name": page, "metrics_path": f"/{page}", "static_configs": [{"targets": [served]}],
                 "metric_relabel_configs": [{"source_labels": ["__name__"], "regex": "gpugate_.*|.*_fail_open_count", "action": "keep"}]}
                for page in ("kept", "one", "api-server")
            ],
        }))  # fmt: skip

        recorded = {rule["record"] for file in (rules, tmp_path / "fleet-rules.yaml") for rule in rules_of(file)}
        missing = {**PANELS, **{record: record for record in recorded - QUIET}}
        missing |= {alert: metric for alert in ALERTS for metric in re.findall(r"gpugate_\w+", alert)[:1]}
        # Of both clusters, however their series arrive.
        for each in ("one", "two"):
            missing |= {f"{record} of {each}": f'{record}{{cluster="{each}"}}' for record in (
                "cluster_version:gpugate_build_info:count", "cluster:gpugate_audit_gpu_spend_usd_per_hour:max")}  # fmt: skip

        def is_complete() -> bool:
            send()
            assert not api.create(node_pool(), dry_run=True).ok
            assert api.create(unanswered, dry_run=True).ok
            for title in [title for title, query in missing.items() if asked(central, query)]:
                del missing[title]
            return not missing

        until(is_complete, lambda: missing)
        # Without a syntax error; whether they fire depends on the time.
        for alert in ALERTS:
            asked(central, alert)
        for url in (of_one, of_two, central):
            assert unhealthy_rules(url) == []
        ours = '__name__=~"gpugate_.*|cluster.*:.*"'
        assert asked(central, f"{{{ours}, exported_cluster!=''}}") == []
        assert asked(central, f"{{{ours}, cluster=''}}") == []
        clusters = asked(central, f"group by (cluster, region) ({{{ours}, region!=''}})")
        assert {(each["metric"]["cluster"], each["metric"]["region"]) for each in clusters} == {
            ("one", "eu"),
            ("two", "us"),
        }
        series = asked(central, 'count by (cluster) ({__name__=~"cluster.*:.*", region!=""})')
        assert all(int(each["value"][1]) < 1_800 for each in series)

        second.close()
        until(
            lambda: (
                [each["metric"]["cluster"] for each in asked(central, "cluster:gpugate_build_info:silent")] == ["two"]
            ),
            lambda: asked(central, "cluster_version:gpugate_build_info:count"),
        )


def rules_of(file: Path) -> Iterator[Json]:
    for group in yaml.safe_load(file.read_text())["groups"]:
        yield from (rule for rule in group["rules"] if "record" in rule)


def metrics_of(api: Api) -> str:
    return str(api.request("GET", "/metrics").body["message"])
