"""`make sbom`: writes what the image holds as a CycloneDX document.

`python image/bill_of_materials.py TREE FOLDER` with cyclonedx-bom (https://github.com/CycloneDX/cyclonedx-python) installed:
TREE is what `image/install.py` has made, so what is listed is what is there; the document is `gpugate-VERSION.cdx.json`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

_OURS = "gpugate"
_SPECIFICATION = "1.6"


class BillError(Exception):
    """The document cannot be written; the text says why."""


def main() -> None:
    """Read the command line and write the document."""
    tree, folder = map(Path, sys.argv[1:])
    try:
        written = write(tree, folder)
    except BillError as error:
        sys.exit(f"error: {error}")
    print(written)


def write(tree: Path, folder: Path) -> Path:
    """Write the document into a folder and return it.

    Raises:
        BillError: the tool failed, gpugate is not in the tree, or the document is not as CycloneDX says.
    """
    bill = _about_ours(_listed(tree))
    text = json.dumps(bill, indent=2) + "\n"
    wrong = JsonStrictValidator(SchemaVersion.from_version(_SPECIFICATION)).validate_str(text)
    if wrong:
        raise BillError(f"not a CycloneDX {_SPECIFICATION} document: {wrong}")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{_OURS}-{bill['metadata']['component']['version']}.cdx.json"
    file.write_text(text, encoding="utf-8")
    return file


def _listed(tree: Path) -> dict[str, Any]:
    options = (
        "--spec-version",
        _SPECIFICATION,
        "--output-format",
        "JSON",
        "--output-reproducible",
        "--output-file",
        "-",
    )
    command = [sys.executable, "-m", "cyclonedx_py", "environment", *options, str(tree / "bin" / "python")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- with arguments of ours
    if ran.returncode:
        raise BillError(f"cyclonedx-py failed:\n{ran.stderr}")
    return dict(json.loads(ran.stdout))


def _about_ours(bill: dict[str, Any]) -> dict[str, Any]:
    """Make gpugate what the document is about; the tool knows a version from pyproject.toml only, where ours is not."""
    ours = [each for each in bill["components"] if each["name"] == _OURS]
    if not ours:
        raise BillError("gpugate is not in the tree: make it with image/install.py")
    others = [each for each in bill["components"] if each["name"] != _OURS]
    # It is on no index, so that no package URL would lead to it.
    component = {name: value for name, value in ours[0].items() if name != "purl"} | {"type": "application"}
    return bill | {"metadata": bill.get("metadata", {}) | {"component": component}, "components": others}


if __name__ == "__main__":
    main()
