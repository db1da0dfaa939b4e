"""`make image`: builds the image with the container engine that is here.

`python image/build.py [--engine NAME] [--tag NAME] [--allow-unpinned] [NAME=VALUE ...]`; what has the form NAME=VALUE is an argument of the Dockerfile, such as
`RUNTIME_IMAGE=...@sha256:...`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_INSTEAD = "`make e2e K=image` carries out the same steps without an engine, and runs what comes of them as a Pod would"
_UNKNOWN = "unknown"
_BASES = ("BUILD_IMAGE", "RUNTIME_IMAGE")
_BASE = rf"^ARG ({'|'.join(_BASES)})=(\S+)$"
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}\Z")


class Engine(NamedTuple):
    """A program that builds images: its name, what it is asked to see whether it works, and how it builds."""

    name: str
    works: tuple[str, ...]
    build: tuple[str, ...]


# The last two need no daemon. Docker's own builder has to write the format that Helm's and Kubernetes' tools expect itself.
ENGINES = (
    Engine("docker", ("info",), ("build",)),
    Engine("buildah", ("info",), ("build", "--format", "oci")),
    Engine("podman", ("info",), ("build", "--format", "oci")),
)


class BuildError(Exception):
    """There can be no image; the text says what is missing."""


def main() -> int:
    """Read the command line and build; returns the exit code of the engine."""
    parser = argparse.ArgumentParser(description="Build the container image.")
    parser.add_argument("--engine", choices=[engine.name for engine in ENGINES], help="default: the first that works")
    parser.add_argument("--tag", default=f"gpugate:{version()}", help="default: %(default)s")
    parser.add_argument(
        "--allow-unpinned", action="store_true", help="take base images by tag too, which can change between two builds"
    )
    parser.add_argument("arguments", nargs="*", metavar="NAME=VALUE", help="an argument of the Dockerfile")
    args = parser.parse_args()
    try:
        if not args.allow_unpinned:
            _refuse_unpinned(args.arguments)
        engine = _working([each for each in ENGINES if args.engine in {None, each.name}])
    except BuildError as error:
        sys.exit(f"error: {error}")
    given = [f"VERSION={version()}", f"REVISION={_revision()}", *args.arguments]
    options = [word for each in given for word in ("--build-arg", each)]
    command = [engine.name, *engine.build, "--tag", args.tag, *options, str(ROOT)]
    # Docker without it takes its old builder, which does not read .dockerignore patterns as written here.
    environment = os.environ | {"DOCKER_BUILDKIT": "1"}
    return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603 -- an engine, with arguments of ours


def version() -> str:
    """Return the version that the sources say."""
    source = (ROOT / "src/gpugate/__init__.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "(.+)"', source)
    return found[1] if found else _UNKNOWN


def _refuse_unpinned(arguments: list[str]) -> None:
    """Refuse base images that are not named by digest: what a tag names can be another image tomorrow.

    The Dockerfile names tags, because a digest that nobody has pulled and checked would be no better.

    Raises:
        BuildError: one is not.
    """
    given = dict(re.findall(_BASE, (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE))
    given |= dict(each.split("=", 1) for each in arguments if "=" in each)
    loose = [f"{name}={given[name]}" for name in _BASES if not _DIGEST.search(given[name])]
    if loose:
        raise BuildError(
            f"not pinned by digest: {', '.join(loose)}. Give NAME@sha256:..., which `docker buildx imagetools inspect NAME` "
            "prints, or --allow-unpinned"
        )


def _working(engines: list[Engine]) -> Engine:
    reasons = []
    for engine in engines:
        if shutil.which(engine.name) is None:
            reasons.append(f"{engine.name} is not installed")
        elif _quiet(engine.name, *engine.works).returncode:
            reasons.append(f"{engine.name} does not answer (`{engine.name} {' '.join(engine.works)}` says why)")
        else:
            return engine
    raise BuildError(f"no container engine: {', '.join(reasons)}. {_INSTEAD}")


def _revision() -> str:
    ran = _quiet("git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*")
    return ran.stdout.strip() or _UNKNOWN


def _quiet(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- an engine or git
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, "", "")


if __name__ == "__main__":
    sys.exit(main())
