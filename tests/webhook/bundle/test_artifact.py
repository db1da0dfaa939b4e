from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.bundle.archive import ArchiveError
from gpugate.webhook.bundle.artifact import (
    ARTIFACT,
    LAYER,
    Bundle,
    BundleError,
    collect,
    fetch,
    pack_bundle,
    push,
    write_directory,
)
from gpugate.webhook.bundle.reference import parse_reference
from gpugate.webhook.bundle.registry import Registry, RegistryError

if TYPE_CHECKING:
    from conftest import FakeRegistry

POLICY = b"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
FILES = {"policy.yaml": POLICY, "policies/acme/one.py": b"1"}


def test_the_same_files_have_the_same_digest_on_every_machine() -> None:
    digest = "sha256:099fabc4e5e4c0d2af5fbfc17c3a3c7abcad41432a0303e9a1c5ac6b3f694188"
    assert pack_bundle({"policy.yaml": POLICY}).digest == digest


def test_a_bundle_comes_back_by_its_digest(registry: FakeRegistry) -> None:
    reference = parse_reference(f"{registry.host}/acme/p:1")
    packed = pack_bundle(FILES)
    push(Registry(reference, None, 60), packed)
    assert fetch(Registry(reference, None, 60), reference, packed.digest) == Bundle(packed.digest, FILES)


def manifest(**changes: Any) -> dict[str, Any]:
    layer = {"mediaType": LAYER, "digest": f"sha256:{'a' * 64}", "size": 3}
    return {"schemaVersion": 2, "artifactType": ARTIFACT, "layers": [layer], **changes}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"no json", "the manifest is invalid"),
        ({"schemaVersion": "2"}, "the manifest is invalid"),
        ({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json"}, "an index of images"),
        (
            {
                "schemaVersion": 2,
                "config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": "", "size": 1},
            },
            "not a policy bundle, but 'application/vnd.cncf.helm.config",
        ),
        (manifest(artifactType="x/y"), "not a policy bundle, but 'x/y'"),
        (manifest(layers=[]), "has one layer"),
        (manifest(layers=manifest()["layers"] * 2), "has one layer"),
        (manifest(layers=[{"mediaType": LAYER, "digest": "sha512:x", "size": 3}]), "has one layer"),
        (manifest(layers=[{"mediaType": LAYER, "digest": f"sha256:{'a' * 64}", "size": -3}]), "has one layer"),
    ],
)
def test_what_is_no_bundle_is_named(registry: FakeRegistry, document: Any, reason: str) -> None:
    reference = parse_reference(f"{registry.host}/a:1")
    digest = registry.put("a", "1", document)
    with pytest.raises(BundleError, match=reason):
        fetch(Registry(reference, None, 60), reference, digest)


def test_a_manifest_that_is_nested_very_deep_is_named(registry: FakeRegistry) -> None:
    reference = parse_reference(f"{registry.host}/a:1")
    deep = b'{"schemaVersion": 2, "extension": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    digest = registry.put("a", "1", deep)
    with pytest.raises(BundleError, match="not a policy bundle"):
        fetch(Registry(reference, None, 60), reference, digest)


def test_a_layer_is_compared_with_its_digest_before_it_is_unpacked(registry: FakeRegistry) -> None:
    reference = parse_reference(f"{registry.host}/a:1")
    packed, other = pack_bundle(FILES), pack_bundle({**FILES, "policies/acme/one.py": b"2"})
    push(Registry(reference, None, 60), packed)
    (layer,) = json.loads(packed.manifest)["layers"]
    registry.blobs[layer["digest"]] = other.layer
    with pytest.raises(RegistryError, match="another digest"):
        fetch(Registry(reference, None, 60), reference, packed.digest)


@pytest.mark.parametrize(
    ("files", "reason"),
    [({"other.yaml": b""}, "contains no policy.yaml"), ({**FILES, "bundle.json": b""}, "a name that gpugate writes")],
)
def test_a_bundle_has_the_files_of_a_bundle(registry: FakeRegistry, files: dict[str, bytes], reason: str) -> None:
    reference = parse_reference(f"{registry.host}/a:1")
    packed = pack_bundle(files)
    push(Registry(reference, None, 60), packed)
    with pytest.raises(BundleError, match=reason):
        fetch(Registry(reference, None, 60), reference, packed.digest)


def test_a_hostile_layer_is_refused(registry: FakeRegistry) -> None:
    reference = parse_reference(f"{registry.host}/a:1")
    layer = b"no archive"
    described = {"mediaType": LAYER, "digest": registry.put_blob(layer), "size": len(layer)}
    digest = registry.put("a", "1", manifest(layers=[described]))
    with pytest.raises(ArchiveError):
        fetch(Registry(reference, None, 60), reference, digest)


def content(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


REFERENCE = parse_reference("registry.example.com/a:1")


def test_a_bundle_replaces_an_earlier_one_as_a_whole(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "bundle"
    write_directory(Bundle("sha256:1", FILES), REFERENCE, directory)
    write_directory(Bundle("sha256:2", {"policy.yaml": b"2"}), REFERENCE, directory)
    written = content(directory)
    assert json.loads(written.pop("bundle.json"))["digest"] == "sha256:2"
    assert written == {"policy.yaml": b"2"}
    assert [path.name for path in directory.parent.iterdir()] == ["bundle"]


def test_an_empty_directory_becomes_a_bundle(tmp_path: Path) -> None:
    write_directory(Bundle("sha256:1", FILES), REFERENCE, tmp_path / "empty")
    assert FILES.items() <= content(tmp_path / "empty").items()


@pytest.mark.parametrize("sort", ["files", "link", "file"])
def test_what_is_no_bundle_is_not_replaced(tmp_path: Path, sort: str) -> None:
    target, directory = tmp_path / "kept", tmp_path / "bundle"
    target.mkdir()
    (target / "file").write_text("mine")
    if sort == "files":
        target.rename(directory)
    elif sort == "link":
        directory.symlink_to(target)
    else:
        directory.write_text("mine")
    before = content(tmp_path)
    with pytest.raises(BundleError, match="exists, and is not a bundle"):
        write_directory(Bundle("sha256:1", FILES), REFERENCE, directory)
    assert content(tmp_path) == before


def test_a_write_that_fails_keeps_the_earlier_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "bundle"
    write_directory(Bundle("sha256:1", FILES), REFERENCE, directory)
    before = content(tmp_path)
    written = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name == "one.py":
            raise OSError(28, "No space left on device")
        return written(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(BundleError, match="no space left"):
        write_directory(Bundle("sha256:2", FILES), REFERENCE, directory)
    assert content(tmp_path) == before


def test_files_are_those_that_the_policy_file_names(tmp_path: Path) -> None:
    for name in (
        "platform.yaml",
        "own/acme/a.py",
        "own/acme/b.yaml",
        "own/acme/examples/a/bad.yaml",
        "schemas/x.json",
        "c.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    files = collect(tmp_path / "platform.yaml", [tmp_path / "own"], tmp_path / "schemas")
    assert files == {
        "policy.yaml": b"platform.yaml",
        "own/acme/a.py": b"own/acme/a.py",
        "own/acme/b.yaml": b"own/acme/b.yaml",
        "schemas/x.json": b"schemas/x.json",
    }


def test_a_directory_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "policy.yaml").write_bytes(POLICY)
    (tmp_path / "own").mkdir()
    with pytest.raises(BundleError, match=r"policy_paths\[0\]: .* is not below"):
        collect(tmp_path / "config" / "policy.yaml", [tmp_path / "config" / ".." / "own"], None)
