"""What the real Helm and kustomize reach from a repository of a stranger: no file beside it, no network, no environment."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.rendering import process
from gpugate.webhook.rendering.options import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CANARY = "c4n4ry"
CHART = "apiVersion: v2\nname: app\nversion: 0.1.0\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: a, annotations: {{said: {0}}}}}\nspec: {{containers: [{{name: a, image: a}}]}}\n"


@pytest.fixture
def repository(tree: Callable[[dict[str, str]], Path]) -> Path:
    """A work tree, and a file beside it."""
    return (
        tree({"secret": f"{CANARY}\n", "secret.json": f'{{"const": "{CANARY}"}}', "repo/.git/config": CANARY}) / "repo"
    )


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """A server on loopback: its URL, and what was asked of it."""
    paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(POD.format(CANARY).encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", paths
        server.shutdown()


def written(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


# What a program is asked for beside what gpugate refuses first: each is tried on the programs themselves.
COMMANDS = {
    "a chart with a link": (["helm", "template", "a", "{repo}/app"], {"app/templates/a.yaml": 'said: {{ .Files.Get "stolen" }}\n'}),
    "a schema elsewhere": (
        ["helm", "template", "a", "{repo}/app", "--set", "a=1"],
        {"app/values.schema.json": '{"properties": {"a": {"$ref": "file://{secret}.json"}}}', "app/templates/a.yaml": "a: b\n"},
    ),
    "git's own file": (["kubectl", "kustomize", "{repo}"], {"kustomization.yaml": "configMapGenerator: [{name: a, files: [.git/config]}]\n"}),
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux'")
@pytest.mark.parametrize(("command", "files"), COMMANDS.values(), ids=COMMANDS)
def test_a_program_reads_nothing_but_the_repository(
    command: list[str], files: dict[str, str], repository: Path, programs: Path, tmp_path: Path
) -> None:
    written(repository, {"app/Chart.yaml": CHART, **files})
    schema = repository / "app/values.schema.json"
    if schema.exists():
        schema.write_text(schema.read_text().replace("{secret}", str(tmp_path / "secret")))
    (repository / "app/stolen").symlink_to(tmp_path / "secret")
    home = tmp_path / "home"
    home.mkdir()
    wanted = [part.format(repo=repository) for part in command]
    wanted[0] = str(programs / wanted[0])
    readable = [str(repository / "app"), *map(str, repository.glob("*.yaml"))]
    open_ = process.run(wanted, str(home), Limits(), threading.Event())
    if not landlock():
        pytest.skip("this kernel has no Landlock")

    ran = process.run(wanted, str(home), Limits(), threading.Event(), readable)

    assert CANARY in open_.out.decode() + open_.err
    assert CANARY not in ran.out.decode() + ran.err


def landlock() -> bool:
    code = "import sys; from gpugate.webhook.rendering.isolate import restrict; sys.exit(not restrict(['/bin/true'], '/tmp', []))"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603 -- ours


def test_a_kustomization_fetches_nothing(
    repository: Path, asked: tuple[str, list[str]], programs: Path, tmp_path: Path
) -> None:
    url, paths = asked
    written(repository, {"kustomization.yaml": f"Resources: ['{url}/a.yaml']\n"})
    command = [str(programs / "kubectl"), "kustomize", str(repository)]
    (tmp_path / "home").mkdir()

    process.run(command, str(tmp_path / "home"), Limits(), threading.Event())

    assert paths == []


def test_a_chart_asks_no_name_server_and_no_cluster(
    repository: Path, ran: Callable[..., subprocess.CompletedProcess[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = '{{ getHostByName "localhost" | quote }}{{ lookup "v1" "Secret" "" "" | toJson | quote }}'
    monkeypatch.setenv("HELM_KUBETOKEN", CANARY)
    written(repository, {"app/Chart.yaml": CHART, "app/templates/a.yaml": POD.format(0).replace("0", said)})

    done = ran(repository, "check", "app", "-o", "json")

    assert CANARY not in done.stdout + done.stderr
    assert "127.0.0.1" not in done.stdout


def test_the_keys_of_a_kustomization_count_in_any_case(programs: Path, repository: Path) -> None:
    written(repository, {"kustomization.yaml": "re\u017fources: [pod.yaml]\n", "pod.yaml": POD.format(CANARY)})

    done = subprocess.run(  # noqa: S603 -- as people run it
        [programs / "kubectl", "kustomize", repository],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": os.devnull},
    )

    assert CANARY in done.stdout


def test_a_kustomization_inflates_a_chart_of_the_repository(
    repository: Path, checked: Callable[..., dict[str, Any]]
) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: {{ .Release.Name }}}\nspec: {containers: [{name: a, image: a}]}\n"
    )
    written(
        repository,
        {
            "app/kustomization.yaml": "helmCharts: [{name: c, releaseName: mine, valuesFile: v.yaml}]\n",
            "app/v.yaml": "a: 1\n",
            "app/charts/c/Chart.yaml": CHART.replace("app", "c"),
            "app/charts/c/templates/pod.yaml": pod,
        },
    )

    report = checked(repository, "-k", "app", "--enable-helm")

    assert report["summary"]["objects"] == 1, report["findings"]
