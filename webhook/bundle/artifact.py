"""The artifact of a policy bundle: what is in it, its manifest, and the directory that it is unpacked to.

A bundle is an OCI image manifest (image specification v1.1.1, Guidelines for Artifact Usage) with an empty configuration and
one layer: an archive with `policy.yaml`, the directories of policies that it names, and `schemas/`.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.json_text import read_json
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.bundle.archive import MOST_PACKED, pack, unpack
from gpugate.webhook.bundle.reference import digest_of, is_digest
from gpugate.webhook.bundle.registry import INDEX, MANIFEST
from gpugate.webhook.manifests.bounded_file import read_regular
from gpugate.webhook.manifests.policy_file import MAX_POLICY_FILE
from gpugate.webhook.manifests.within import refuse_link
from gpugate.webhook.own_policies.sources import read_directories

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpugate.webhook.bundle.reference import Reference
    from gpugate.webhook.bundle.registry import Registry

ARTIFACT: Final = "application/vnd.gpugate.policies.v1"
LAYER: Final = "application/vnd.gpugate.policies.v1.tar+gzip"
EMPTY: Final = "application/vnd.oci.empty.v1+json"
_EMPTY_CONFIG: Final = b"{}"
POLICY_FILE: Final = "policy.yaml"
SCHEMAS: Final = "schemas"
RECORD: Final = "bundle.json"
_MOST_SCHEMA: Final = 4 << 20
_MOST_SCHEMAS: Final = 500
_PYTHON: Final = ".py"


class BundleError(GpugateError):
    """A bundle cannot be made, or what a registry has is no bundle; the text says why and what to do."""


class Descriptor(msgspec.Struct, rename="camel", omit_defaults=True):
    """What a manifest says of one blob."""

    media_type: str
    digest: str
    size: int
    annotations: dict[str, str] = {}
    artifact_type: str = ""


class ImageManifest(msgspec.Struct, rename="camel", omit_defaults=True):
    """An image manifest, as far as artifacts have one."""

    schema_version: int
    media_type: str = ""
    artifact_type: str = ""
    config: Descriptor | None = None
    layers: list[Descriptor] = []


class Bundle(Struct, frozen=True):
    """The content of a bundle.

    Attributes:
        digest: the digest of its manifest.
        files: its files, by their names with `/`.
    """

    digest: str
    files: Mapping[str, bytes]

    @property
    def has_code(self) -> bool:
        """Whether it contains Python, which runs when its policies are loaded."""
        return any(name.endswith(_PYTHON) for name in self.files)


class Packed(Struct, frozen=True):
    """A bundle as a registry stores it: the manifest and its layer."""

    manifest: bytes
    layer: bytes

    @property
    def digest(self) -> str:
        """The digest of the manifest, which is that of the bundle."""
        return digest_of(self.manifest)


def collect(policy_file: Path, directories: Sequence[Path], schemas: Path | None) -> dict[str, bytes]:
    """Read the files of a bundle.

    Args:
        policy_file: becomes `policy.yaml`.
        directories: the directories of policies that the policy file names; they must be below its folder.
        schemas: a folder of additional schemas, which becomes `schemas`.

    Raises:
        BundleError: a file cannot be read, or a directory is elsewhere.
        GpugateError: a directory of policies is invalid.
    """
    folder = Path(os.path.normpath(policy_file.parent))
    files = {POLICY_FILE: _read(policy_file, MAX_POLICY_FILE)}
    for index, directory in enumerate(directories):
        if not Path(os.path.abspath(directory)).is_relative_to(os.path.abspath(folder)):  # noqa: PTH100 -- pathlib resolves links
            raise BundleError(
                f"{policy_file}: policy_paths[{index}]: {directory} is not below {folder}: move it there, because a bundle "
                "contains one folder"
            )
    for source in read_directories(directories, name="policy_paths"):
        name = PurePosixPath(os.path.relpath(source.file, folder).replace(os.sep, "/"))
        files[str(name)] = source.data
    if schemas is not None:
        found = sorted(schemas.glob("*.json"))
        if len(found) > _MOST_SCHEMAS:
            raise BundleError(f"{schemas}: more than {_MOST_SCHEMAS} schemas: remove some")
        for file in found:
            refuse_link(file, "--schemas")
            files[f"{SCHEMAS}/{file.name}"] = _read(file, _MOST_SCHEMA)
    return files


def _read(file: Path, limit: int) -> bytes:
    try:
        return read_regular(file, limit)
    except OSError as error:
        raise BundleError(f"{file}: {(error.strerror or 'cannot be read').lower()}") from None


def pack_bundle(files: Mapping[str, bytes]) -> Packed:
    """Return the bundle of some files; the same files have the same digest.

    Raises:
        ArchiveError: the files exceed a limit.
    """
    layer = pack(files)
    manifest = ImageManifest(
        schema_version=2,
        media_type=MANIFEST,
        artifact_type=ARTIFACT,
        config=Descriptor(EMPTY, digest_of(_EMPTY_CONFIG), len(_EMPTY_CONFIG)),
        layers=[Descriptor(LAYER, digest_of(layer), len(layer))],
    )
    return Packed(msgspec.json.encode(manifest), layer)


def push(registry: Registry, packed: Packed) -> None:
    """Write a bundle to a registry, by its digest.

    Raises:
        RegistryError: the registry refuses it.
    """
    registry.push_blob(packed.layer)
    registry.push_blob(_EMPTY_CONFIG)
    registry.push_manifest(packed.digest, packed.manifest)


def fetch(registry: Registry, reference: Reference, digest: str) -> Bundle:
    """Read a bundle by its digest; every part is compared with its digest before it is unpacked.

    Raises:
        ArchiveError: the archive is invalid or hostile.
        BundleError: the digest is not that of a bundle.
        RegistryError: the registry has no valid answer.
    """
    layer = _layer_of(registry.manifest(digest).data, reference.with_digest(digest))
    files = unpack(registry.blob(layer.digest, layer.size, MOST_PACKED))
    if POLICY_FILE not in files:
        raise BundleError(f"{reference.with_digest(digest)}: the bundle contains no {POLICY_FILE}")
    if RECORD in files:
        raise BundleError(f"{reference.with_digest(digest)}: the bundle contains {RECORD}, a name that gpugate writes")
    return Bundle(digest, files)


def _layer_of(data: bytes, reference: Reference) -> Descriptor:
    manifest = decode_manifest(data, str(reference))
    if manifest.media_type == INDEX:
        raise BundleError(f"{reference}: an index of images, not a policy bundle")
    if manifest.media_type not in {"", MANIFEST} or manifest.artifact_type != ARTIFACT:
        sort = manifest.artifact_type or (manifest.config.media_type if manifest.config else "") or manifest.media_type
        raise BundleError(f"{reference}: not a policy bundle, but {sort or 'something else'!r}")
    layers = manifest.layers
    if len(layers) != 1 or layers[0].media_type != LAYER or not is_digest(layers[0].digest) or layers[0].size < 0:
        raise BundleError(
            f"{reference}: a policy bundle has one layer of type {LAYER}; this one was not made by gpugate"
        )
    return layers[0]


def decode_manifest(data: bytes, name: str) -> ImageManifest:
    """Decode a manifest or an index.

    Raises:
        BundleError: it is neither.
    """
    try:
        return read_json(msgspec.json.Decoder(ImageManifest).decode, data)
    except (msgspec.DecodeError, UnicodeError):
        raise BundleError(f"{name}: the manifest is invalid") from None


def write_directory(bundle: Bundle, reference: Reference, directory: Path) -> None:
    """Write a bundle to a directory, as a whole or not at all; an earlier bundle there is replaced.

    Raises:
        BundleError: the directory contains something else, or cannot be written.
    """
    if directory.is_symlink() or (directory.exists() and not _is_replaceable(directory)):
        raise BundleError(f"{directory}: exists, and is not a bundle: name another directory")
    random = os.urandom(8).hex()
    unfinished, previous = (directory.with_name(f".{directory.name}.{random}.{part}") for part in ("new", "old"))
    try:
        unfinished.mkdir(parents=True)
        record = {"reference": str(reference.with_digest(bundle.digest)), "digest": bundle.digest}
        for name, data in {**bundle.files, RECORD: msgspec.json.encode(record)}.items():
            file = unfinished / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        if directory.exists():
            directory.rename(previous)
        try:
            unfinished.rename(directory)
        except OSError:
            with suppress(OSError):
                previous.rename(directory)
            raise
    except OSError as error:
        raise BundleError(f"{directory}: {(error.strerror or 'cannot be written').lower()}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        if directory.exists():
            shutil.rmtree(previous, ignore_errors=True)


def _is_replaceable(directory: Path) -> bool:
    try:
        return directory.is_dir() and ((directory / RECORD).is_file() or not any(directory.iterdir()))
    except OSError:
        return False
