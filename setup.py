"""Lists the packages for setuptools. Everything else is in pyproject.toml.

`package-dir` maps folders of the repository to packages: users import `gpugate.webhook` from the folder `webhook`. setuptools
does not search mapped folders for packages, and a list in pyproject.toml would miss a new one.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from setuptools import find_packages, setup

FOLDERS = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-dir"]
BELOW = {f"{package}.{each}".lstrip(".") for package, folder in FOLDERS.items() for each in find_packages(folder)}

# `tools` writes files of the repository, which a wheel does not have.
TOOLS = {each for each in BELOW if each.startswith("gpugate.tools")}

setup(packages=sorted({*filter(None, FOLDERS), *BELOW} - TOOLS))
