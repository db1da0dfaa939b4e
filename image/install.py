"""Lays out what the container image holds: gpugate, what it needs, and a program that starts it.

`python -I image/install.py DESTINATION [--interpreter FILE]`. Run by the Dockerfile and, where there is no container engine,
by hand and by the end-to-end tests, so that all of them make the same tree. It needs pip, and nothing else that Python
does not bring; the Python that runs it must be of the same minor version as the interpreter that will run the tree.

    DESTINATION/pyvenv.cfg                              what makes it an environment of its own (PEP 405)
    DESTINATION/bin/python                              a link to the interpreter
    DESTINATION/bin/gpugate                             starts gpugate, isolated from the environment and the working directory
    DESTINATION/lib/pythonX.Y/site-packages             everything that is imported
"""

from __future__ import annotations

import argparse
import compileall
import csv
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from py_compile import PycInvalidationMode

ROOT = Path(__file__).resolve().parents[1]
# What a wheel of gpugate is built from, and what it needs beside it.
SOURCES = ("pyproject.toml", "setup.py", "README.md", "src", "certs", "policies", "webhook")
LOCKS = ("requirements/build.txt", "requirements/runtime.txt")
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
# Sources of compiled modules, type stubs, and what pip writes about the place it installed from.
_NEVER_READ = ("*.c", "*.h", "*.pyi", "*.pyx", "*.pxd", "*.pxi", "*.in", "direct_url.json", "REQUESTED")
_TESTS = ("test", "tests")
_LAUNCHER = """#!{python} -IB
import sys
from gpugate.webhook.cli.main import run
sys.exit(run())
"""


class InstallError(Exception):
    """The tree cannot be made; the text says what to do."""


def main() -> None:
    """Read the command line and lay out the tree."""
    parser = argparse.ArgumentParser(description="Lay out what the container image holds.")
    parser.add_argument("destination", type=Path, help="where; must be empty or not there yet")
    parser.add_argument(
        "--interpreter",
        type=Path,
        default=Path(getattr(sys, "_base_executable", sys.executable)),
        help="what will run it there (default: what runs this)",
    )
    args = parser.parse_args()
    try:
        install(args.destination.absolute(), args.interpreter)
    except InstallError as error:
        sys.exit(f"error: {error}")


def install(destination: Path, interpreter: Path) -> None:
    """Lay out the tree.

    Args:
        destination: absolute path that it is made at and started from.
        interpreter: the Python that will run it; need not be there yet.

    Raises:
        InstallError: the destination holds something, or a command failed.
    """
    if destination.exists() and any(destination.iterdir()):
        raise InstallError(f"{destination} is not empty: name a folder that is not there yet")
    packages = destination / "lib" / _VERSION / "site-packages"
    packages.mkdir(parents=True)
    _pip("install", "--target", str(packages), "--no-deps", *_locked("requirements/runtime.txt"))
    _remove_programs(packages)
    with tempfile.TemporaryDirectory(prefix="gpugate-build-") as name:
        wheel = _wheel(Path(name))
        _pip("install", "--target", str(packages), "--no-deps", "--no-index", "--no-compile", str(wheel))
    _remove_programs(packages)
    _strip(packages)
    _start_by(destination, interpreter)
    # A checked hash or time stamp would be read again at every import, and a copy between stages may change times.
    if not compileall.compile_dir(packages, quiet=1, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH):
        raise InstallError("a module could not be compiled; see above")
    _settle(destination)


def _wheel(folder: Path) -> Path:
    """Build a wheel of gpugate from a copy, so that nothing is left among the sources."""
    tools, sources, wheels = folder / "tools", folder / "sources", folder / "wheels"
    sources.mkdir()
    for source in (ROOT / each for each in SOURCES):
        if source.is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, sources / source.name, symlinks=True, ignore=unwanted)
        else:
            shutil.copy(source, sources)
    _pip("install", "--target", str(tools), "--no-deps", *_locked("requirements/build.txt"))
    isolated = {**os.environ, "PYTHONPATH": str(tools)}
    _pip(
        "wheel",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "-w",
        str(wheels),
        str(sources),
        environment=isolated,
    )
    return next(wheels.glob("gpugate-*.whl"))


def _locked(lock: str) -> tuple[str, ...]:
    # Wheels only: what would be built from sources here could run anything.
    return "--require-hashes", "--only-binary=:all:", "--no-compile", "-r", str(ROOT / lock)


def _pip(*arguments: str, environment: dict[str, str] | None = None) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "--no-cache-dir", "--root-user-action=ignore")
    command = [sys.executable, "-P", "-m", "pip", arguments[0], *quiet, *arguments[1:]]
    if arguments[0] != "install":
        command.remove("--root-user-action=ignore")
    ran = subprocess.run(command, env=environment, check=False)  # noqa: S603 -- pip, with arguments of ours
    if ran.returncode:
        raise InstallError(f"pip {arguments[0]} failed (exit code {ran.returncode}); see above")


def _remove_programs(packages: Path) -> None:
    # They name the Python that ran pip; pip warns about those of the run before.
    shutil.rmtree(packages / "bin", ignore_errors=True)


def _strip(packages: Path) -> None:
    """Remove what is never read when gpugate serves: tests, scripts of shells, sources of compiled modules."""
    for package in packages.iterdir():
        for name in _TESTS:
            # Not below: gpugate itself and Kubernetes have folders and modules of such names that are imported.
            shutil.rmtree(package / name, ignore_errors=True)
    # What completes commands at a prompt; there is none in the image, and no shell.
    shutil.rmtree(packages / "gpugate" / "webhook" / "cli" / "shells")
    for pattern in _NEVER_READ:
        for file in packages.rglob(pattern):
            file.unlink()
    for record in packages.glob("*.dist-info/RECORD"):
        _keep_true(record)


def _keep_true(record: Path) -> None:
    """Take out of a list of installed files those that are gone; the hash of one of them was of a temporary path."""
    with record.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if (record.parents[1] / row[0]).exists()]
    with record.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def _start_by(destination: Path, interpreter: Path) -> None:
    programs = destination / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(interpreter)
    configuration = f"home = {interpreter.parent}\ninclude-system-site-packages = false\n"
    (destination / "pyvenv.cfg").write_text(configuration, encoding="utf-8")
    launcher = programs / "gpugate"
    launcher.write_text(_LAUNCHER.format(python=programs / "python"), encoding="utf-8")


def _settle(destination: Path) -> None:
    """Give everything the same permissions and time, so that the same input makes the same tree."""
    moment = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    for path in (destination, *destination.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent == destination / "bin" else 0o644)
        os.utime(path, (moment, moment), follow_symlinks=False)


if __name__ == "__main__":
    main()
