"""Directories of policies are loaded within limits, and each mistake is reported with its file and line."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from own_policies.written import PAUSED, policy, write

from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.own_policies.catalog import OwnPaths, catalog_from
from gpugate.webhook.own_policies.load import load_sources
from gpugate.webhook.own_policies.sources import MOST_FILE_BYTES, MOST_FILES, OwnPolicyError, read_directories

GOOD = policy("@validates(POD)\ndef check(pod, ctx):\n    return iter(())")


def ids(*directories: str) -> list[str]:
    catalog = OwnPaths(tuple(map(Path, directories))).catalog(PolicyConfig(), None)
    return [own.policy.id for own in catalog.own]


def test_a_policy_has_id_documentation_mode_and_origin_of_its_file(folder: Path) -> None:
    write(folder, {"policies/acme/paused_scaler.py": PAUSED})

    (own,) = load_sources(read_directories([Path("policies")]))

    assert own.policy.id == "acme/paused-scaler"
    assert own.policy.title == "ScaledObject that is paused"
    assert own.policy.mode is Stance.ENFORCE
    assert own.policy.params.__struct_fields__ == ("annotation",)
    assert own.origin == "policies/acme/paused_scaler.py"
    assert own.examples == Path("policies/acme/examples/paused_scaler")


def test_the_library_comes_first_and_the_others_follow_in_the_order_of_their_ids(folder: Path) -> None:
    write(folder, {"a/zeta/b.py": GOOD, "a/zeta/a.py": GOOD, "b/acme_corp/x_y.py": GOOD})

    catalog = OwnPaths((Path("a"), Path("b"))).catalog(PolicyConfig(), None)

    assert [policy.id for policy in catalog.policies][-3:] == ["acme-corp/x-y", "zeta/a", "zeta/b"]
    assert catalog.policies[0].id.startswith("claims/")


def test_what_is_no_policy_file_is_not_read(folder: Path) -> None:
    write(
        folder,
        {
            "policies/acme/good.py": GOOD,
            "policies/acme/__init__.py": "raise SystemExit",
            "policies/acme/__pycache__/x.py": "raise SystemExit",
            "policies/acme/examples/good/x.py": "raise SystemExit",
            "policies/acme/.hidden.py": "raise SystemExit",
            "policies/acme/README.md": "",
            "policies/..data/x.py": "raise SystemExit",
            "policies/README.md": "",
        },
    )

    assert ids("policies") == ["acme/good"]


def test_policies_of_a_folder_share_code(folder: Path) -> None:
    shared = "from ._deeper import NAME"
    using = policy("from ._shared import NAME\n@validates(POD)\ndef check(pod, ctx):\n    return iter((NAME,))")
    write(folder, {"p/acme/_shared.py": shared, "p/acme/_deeper.py": "NAME = 'x'", "p/acme/a.py": using})

    assert ids("p") == ["acme/a"]


def test_another_content_of_a_file_is_another_module(folder: Path) -> None:
    body = "{}\n@validates(POD, mode=MODE)\ndef check(pod, ctx):\n    return iter(())"
    for mode in (Stance.WARN, Stance.AUDIT):
        write(folder, {"p/acme/_mode.py": f"NAME = '{mode.name}'"})
        write(folder, {"p/acme/a.py": policy(body.format("from ._mode import NAME\nMODE = Stance[NAME]"))})
        assert load_sources(read_directories([Path("p")]))[0].policy.mode is mode


# What the file contains, and how the error reads.
MISTAKES = {
    "no policy": (policy("X = 1"), "p/acme/a.py:1: contains no policy: decorate a function with @validates(KIND)"),
    "no documentation": (GOOD.partition("\n")[2], "p/acme/a.py:1: missing documentation: begin the file with a docs"),
    "no Python": (policy("def check(:"), "p/acme/a.py:5:11: invalid Python: invalid syntax: correct this line"),
    "a mistake": (policy("\nvalidate(POD)"), "p/acme/a.py:6: raises NameError: name 'validate' is not defined"),
    "a secret in an error": (
        policy("raise ValueError('password')"),
        "p/acme/a.py:5: raises ValueError: correct it; no policy was loaded",
    ),
    "a missing package": (
        policy("import no_such_package"),
        "p/acme/a.py:5: imports no_such_package, which is not installed: install it in the environment of gpugate",
    ),
    "an exit": (policy("raise SystemExit(0)"), "p/acme/a.py:5: raises SystemExit: correct it"),
    "another SDK": (policy("SDK = 2\n") + GOOD, "p/acme/a.py:1: written for SDK 2: this gpugate has SDK 1"),
    "a kind as text": (
        policy("@validates('Pod')\ndef check(pod, ctx):\n    yield"),
        "p/acme/a.py:5: the decorator names no kind",
    ),
    "no kind": (policy("@validates()\ndef check(pod, ctx):\n    yield"), "p/acme/a.py:5: the decorator names no kind"),
    "needs of another type": (
        policy("@validates(POD, needs=['pods'])\ndef check(pod, ctx):\n    yield"),
        "p/acme/a.py:5: invalid `needs`",
    ),
    "a mode as text": (
        policy("@validates(POD, mode='warn')\ndef check(pod, ctx):\n    yield"),
        "p/acme/a.py:5: invalid `mode`",
    ),
    "two modes": (
        policy(
            "@validates(POD)\ndef a(pod, ctx):\n    yield\n@validates(POD, mode=Stance.WARN)\ndef b(pod, ctx):\n    yield"
        ),
        "p/acme/a.py:1: its functions have different modes or parameters",
    ),
    "too large": (GOOD + "#" * MOST_FILE_BYTES, "p/acme/a.py: is larger than"),
    "bytes": (GOOD + "\0", "p/acme/a.py"),
}


@pytest.mark.parametrize(("text", "error"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_has_file_and_line_and_what_to_do(text: str, error: str, folder: Path) -> None:
    write(folder, {"p/acme/a.py": text})
    before = set(sys.modules)

    with pytest.raises(OwnPolicyError, match=f"^{re.escape(error)}"):
        ids("p")

    assert {name for name in set(sys.modules) - before if name.startswith("gpugate_own")} == set()


# Files, and how the error reads.
REFUSED = {
    "a family of the library": ({"p/pods/a.py": GOOD}, "p/pods/a.py: `pods` is a family of the library"),
    "a policy without a folder": (
        {"p/a.py": GOOD},
        "p/a.py: not in the folder of an organisation: move it to p/acme/a.py, where `acme` is your organisation",
    ),
    "an invalid folder": ({"p/Acme/a.py": GOOD}, "p/Acme/a.py: invalid name of a folder"),
    "an invalid name": ({"p/acme/a.b.py": GOOD}, "p/acme/a.b.py: invalid name of a file"),
    "two of one name": ({"p/acme/a_b.py": GOOD, "p/acme/a-b.py": GOOD}, "p/acme/a_b.py: p/acme/a-b.py has the same"),
    "too many": ({f"p/acme/a{number}.py": "" for number in range(MOST_FILES + 1)}, "p: more than 500 files"),
    "no directory": ({"q/acme/a.py": GOOD}, "--policy-path p: no such directory; create it with `gpugate new-policy`"),
}


@pytest.mark.parametrize(("files", "error"), REFUSED.values(), ids=REFUSED)
def test_a_directory_is_refused(files: dict[str, str], error: str, folder: Path) -> None:
    write(folder, files)

    with pytest.raises(OwnPolicyError, match=f"^{re.escape(error)}"):
        ids("p")


def test_two_directories_have_no_policy_of_one_id(folder: Path) -> None:
    write(folder, {"p/acme/a.py": GOOD, "q/acme/a.py": GOOD})

    with pytest.raises(OwnPolicyError, match="has the same"):
        ids("p", "q")


def test_a_link_out_of_the_directory_is_refused(folder: Path) -> None:
    write(folder, {"elsewhere/a.py": GOOD, "p/acme/b.py": GOOD})
    (folder / "p/acme/a.py").symlink_to(folder / "elsewhere/a.py")

    with pytest.raises(OwnPolicyError, match=r"p/acme/a.py: a link out of p: put the file in its place"):
        ids("p")


def test_a_mounted_config_map_is_read_through_its_links(folder: Path) -> None:
    write(folder, {"p/acme/..2026/a.py": GOOD})
    (folder / "p/acme/..data").symlink_to("..2026")
    (folder / "p/acme/a.py").symlink_to("..data/a.py")

    assert ids("p") == ["acme/a"]


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    write(folder, {"p/acme/b.py": GOOD})
    os.mkfifo(folder / "p/acme/a.py")

    with pytest.raises(OwnPolicyError, match=r"p/acme/a.py: is not a regular file"):
        ids("p")


def test_a_policy_file_names_directories_beside_it(folder: Path) -> None:
    write(folder, {"conf/own/acme/a.py": GOOD, "conf/policy.yaml": ""})

    catalog = OwnPaths().catalog(PolicyConfig(policy_paths=("own",)), Path("conf/policy.yaml"))

    assert [own.policy.id for own in catalog.own] == ["acme/a"]


def test_an_installed_package_has_policies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = "site/acme_gpu-1.2.dist-info"
    write(
        folder,
        {
            f"{info}/METADATA": "Metadata-Version: 2.1\nName: acme-gpu\nVersion: 1.2\n",
            f"{info}/entry_points.txt": "[gpugate.policies]\nacme = acme_gpu_e\n",
            "site/acme_gpu_e/__init__.py": "",
            "site/acme_gpu_e/_shared.py": "NAME = 'x'",
            "site/acme_gpu_e/big_pod.py": policy("from acme_gpu_e._shared import NAME\n") + GOOD,
        },
    )
    monkeypatch.syspath_prepend(str(folder / "site"))

    (own,) = catalog_from(()).own

    assert (own.policy.id, own.origin) == ("acme/big-pod", "package acme-gpu 1.2")


@pytest.mark.usefixtures("folder")
def test_the_working_directory_is_no_place_of_packages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        folder,
        {
            "evil-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
            "evil-1.dist-info/entry_points.txt": "[gpugate.policies]\nacme = evil\n",
            "evil/__init__.py": "raise SystemExit",
        },
    )
    monkeypatch.syspath_prepend("")
    monkeypatch.syspath_prepend(str(folder))

    assert catalog_from(()).own == ()


def test_without_policies_outside_the_library_nothing_is_imported() -> None:
    sys.modules.pop("gpugate.webhook.own_policies.load", None)

    OwnPaths().catalog(PolicyConfig(), None)

    assert "gpugate.webhook.own_policies.load" not in sys.modules
