"""Builds the wheel and the sdist, installs each into an empty environment, and runs the program there.

Run it with `make release-check`. With the base dependencies alone it runs `check`, `audit --from` and what `new-policy` writes;
with those of the extra `webhook` also `serve`, which has to start, answer its health probe and stop. Exits with 1 at the first
failure.
"""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / "requirements"
DIST = ROOT / "dist"
MANIFEST = ROOT / "tests" / "fixtures" / "manifests" / "scaledobject-model-a.yaml"
DUMP = ROOT / "tests" / "fixtures" / "dumps" / "ml-platform"
OBJECTS = """apiVersion: v1
kind: Namespace
metadata: {name: bad}
---
apiVersion: v1
kind: Pod
metadata: {name: bad, namespace: default}
spec:
  containers:
    - {name: main, image: "registry.example.com/main:1"}
"""
PATIENCE_SECONDS = 60
BACKEND = "from setuptools import build_meta; print(build_meta.build_{}({!r}))"


def main() -> int:
    with TemporaryDirectory(prefix="gpugate-release-") as name:
        folder = Path(name)
        for artifact in built(folder):
            print(f"{artifact.name}:")
            tried(artifact, folder / artifact.suffix.removeprefix("."))
    return 0


def built(folder: Path) -> list[Path]:
    """Build both in a copy of the tracked files, and keep them in `dist`."""
    source, tools = folder / "source", folder / "tools"
    # What git does not track must not get into a release.
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S607
    for file in filter(None, tracked.split("\0")):
        if (ROOT / file).is_file():
            (source / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, source / file)
    venv.create(tools, with_pip=True)
    install(tools, "--require-hashes", "-r", LOCKS / "build.txt")
    DIST.mkdir(exist_ok=True)
    found = []
    for what in ("wheel", "sdist"):
        out = run([tools / "bin" / "python", "-c", BACKEND.format(what, str(DIST))], cwd=source)
        found.append(DIST / out.splitlines()[-1])
    return found


def tried(artifact: Path, environment: Path) -> None:
    venv.create(environment, with_pip=True)
    # An sdist is built where it is installed.
    install(environment, "--require-hashes", "-r", LOCKS / "build.txt", "-r", LOCKS / "check.txt")
    install(environment, "--no-deps", "--no-build-isolation", artifact)
    gpugate = environment / "bin" / "gpugate"
    directory = environment / "work"
    directory.mkdir()
    shutil.copyfile(MANIFEST, directory / "pool.yaml")
    step("--version", run([gpugate, "--version"], directory).strip())
    report = json.loads(run([gpugate, "check", "pool.yaml", "-o", "json"], directory, codes={0, 1}))
    step("check", f"{len(report['findings'])} findings in {report['summary']['objects']} objects")
    audit = json.loads(run([gpugate, "audit", "--from", DUMP, "-o", "json"], directory))
    step("audit --from", f"schema {audit['schema']}")
    step("new-policy", own_policies(gpugate, environment / "own"))
    install(environment, "--require-hashes", "-r", LOCKS / "runtime.txt")
    step("serve", served(gpugate, directory))


def own_policies(gpugate: Path, directory: Path) -> str:
    """In an empty folder, write a policy in Python and one in CEL, test them, and check a file with what both deny."""
    directory.mkdir()
    for policy, kind, language in (("acme/bad-pod", "Pod", ()), ("acme/bad-namespace", "Namespace", ("--cel",))):
        run([gpugate, "new-policy", policy, "--kind", kind, *language], directory)
    passed = run([gpugate, "test", "policies"], directory).splitlines()[-1]
    (directory / "objects.yaml").write_text(OBJECTS, encoding="utf-8")
    report = json.loads(run([gpugate, "check", "--select", "acme/*", "-o", "json"], directory, codes={1}))
    found = sorted(finding["policy"] for finding in report["findings"])
    if found != ["acme/bad-namespace", "acme/bad-pod"]:
        raise SystemExit(f"error: own policies found {found}")
    return f"{passed}; {' and '.join(found)} found"


def served(gpugate: Path, directory: Path) -> str:
    """Start the webhook on free ports of loopback, ask for its health, and stop it."""
    command = [gpugate, "serve", "--host", "127.0.0.1", "--port", "0", "--health-port", "0", "--drain", "0"]
    with (
        (directory / "log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=directory) as process,  # noqa: S603
    ):
        watchdog = Timer(PATIENCE_SECONDS, process.kill)
        watchdog.start()
        try:
            health = ""
            for line in process.stdout or ():
                health = line.removeprefix("health: ").strip() if line.startswith("health: ") else health
                if line.startswith("ready: "):
                    break
            else:
                raise SystemExit(f"error: the webhook did not start:\n{(directory / 'log').read_text()}")
            address = urlsplit(health)
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE_SECONDS)
            connection.request("GET", "/healthz")
            status = connection.getresponse().status
            process.terminate()
            code = process.wait(PATIENCE_SECONDS)
        finally:
            watchdog.cancel()
            process.kill()
    if (status, code) != (200, 0):
        raise SystemExit(f"error: /healthz answered {status}, and the webhook ended with {code}")
    return "started, healthy, stopped"


def install(environment: Path, *what: str | Path) -> None:
    run([environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what], ROOT)


def run(command: Sequence[str | Path], cwd: Path, codes: frozenset[int] | set[int] = frozenset({0})) -> str:
    """Return what a command prints."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603 -- our own words
    if done.returncode not in codes:
        raise SystemExit(
            f"error: {' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def step(name: str, result: str) -> None:
    print(f"  {name}: {result}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
