"""`gpugate bundle`: push the policy file, its own policies and schemas to an OCI registry, pull them, and verify them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.clusters import EVERYWHERE
from gpugate.policies.engine.config import GpugateError, PolicyConfig
from gpugate.webhook.bundle import artifact
from gpugate.webhook.bundle.artifact import POLICY_FILE, SCHEMAS, Bundle, BundleError
from gpugate.webhook.bundle.credentials import docker_config, find_login
from gpugate.webhook.bundle.reference import InvalidReferenceError, Reference, parse_reference
from gpugate.webhook.bundle.registry import Registry
from gpugate.webhook.cli import options
from gpugate.webhook.cli.options import Parser
from gpugate.webhook.manifests.bounded_file import read_named
from gpugate.webhook.manifests.policy_file import load_policy_file
from gpugate.webhook.own_policies.catalog import OwnPaths
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from gpugate.webhook.bundle.signatures import PrivateKey, PublicKey

_PASSWORD: Final = "GPUGATE_SIGN_PASSWORD"  # noqa: S105 -- the name of a variable
_MOST_KEY: Final = 1 << 16
_EPILOG: Final = """examples:
  gpugate bundle push ghcr.io/acme/gpu-policies:v3 -p policy.yaml
  gpugate bundle verify ghcr.io/acme/gpu-policies:v3 --key cosign.pub
  gpugate bundle pull ghcr.io/acme/gpu-policies@sha256:... bundle

Credentials are those of `docker login`: $DOCKER_CONFIG/config.json, else
~/.docker/config.json."""


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    reference = parse_reference(args.reference)
    if args.command == "push":
        _push(args, reference)
    elif args.command == "pull":
        _pull(args, reference)
    else:
        _verify(args, reference)
    return 0


def _push(args: argparse.Namespace, reference: Reference) -> None:
    if reference.digest or not reference.tag:
        raise InvalidReferenceError(
            f"{reference}: the registry computes the digest: write a tag, such as {reference.name}:v1"
        )
    key = _private_key(args)
    # A bundle that does not load would only fail in the clusters.
    options.ruleset(args.policy_file, OwnPaths(), EVERYWHERE)
    own = load_policy_file(args.policy_file, _directories(args.policy_file), None, EVERYWHERE)
    schemas = options.schema_folder(args.schemas) if args.schemas else None
    packed = artifact.pack_bundle(artifact.collect(args.policy_file, own, schemas))
    registry = _registry(args, reference)
    artifact.push(registry, packed)
    if key is not None:
        from gpugate.webhook.bundle.signatures import sign  # noqa: PLC0415 -- cryptography is an extra

        sign(registry, reference, packed.digest, key)
    # The tag comes last, so that nobody who reads it finds a part of a bundle, or one without its signature.
    registry.push_manifest(reference.tag, packed.manifest)
    print(reference.with_digest(packed.digest))


def _directories(policy_file: Path) -> Callable[[PolicyConfig], tuple[Path, ...]]:
    return lambda config: OwnPaths().directories_of(config, policy_file)


def _pull(args: argparse.Namespace, reference: Reference) -> None:
    bundle = _fetch(args, reference, _public_key(args))
    artifact.write_directory(bundle, reference, args.directory)
    print(f"{reference.with_digest(bundle.digest)}: {len(bundle.files)} files in {plain(str(args.directory))}")


def _verify(args: argparse.Namespace, reference: Reference) -> None:
    key = _public_key(args)
    bundle = _fetch(args, reference, key)
    print(f"reference: {reference}")
    print(f"digest: {bundle.digest}")
    print(f"signer: {f'{plain(key.name)} ({key.fingerprint})' if key else 'not verified: no --key'}")
    for line in _contents(bundle):
        print(line)
    print(f"policy file: {_loaded(bundle, may_run=key is not None)}")


def _contents(bundle: Bundle) -> Iterator[str]:
    yield f"contents: {len(bundle.files)} files, {sum(map(len, bundle.files.values())):,} bytes"
    for name, data in sorted(bundle.files.items()):
        yield f"  {plain(name)}  {len(data):,}"


def _loaded(bundle: Bundle, *, may_run: bool) -> str:
    """Load the policies of a bundle, and say how many; Python runs only if a key has signed it."""
    is_off = bundle.has_code and not may_run
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "bundle"
        for name, data in bundle.files.items():
            file = directory / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        try:
            _, catalog = options.bound(directory / POLICY_FILE, OwnPaths(is_off=is_off))
        except GpugateError as error:
            text = str(error).replace(f"{directory}{os.sep}", "").replace(str(directory), ".")
            raise BundleError(f"the policies of the bundle cannot be loaded: {text}") from None
    if is_off:
        return "valid; its own policies were not loaded, because they contain Python code: add --key to run signed code"
    return f"valid (own policies: {len(catalog.own)}, schemas: {_schemas(bundle)})"


def _schemas(bundle: Bundle) -> int:
    return sum(name.startswith(f"{SCHEMAS}/") and name.count("/") == 1 for name in bundle.files)


def _fetch(args: argparse.Namespace, reference: Reference, key: PublicKey | None) -> Bundle:
    registry = _registry(args, reference)
    # Also of a digest: one that the registry does not have is not merely unsigned.
    digest = registry.manifest(reference.selector).digest
    if key is not None:
        from gpugate.webhook.bundle.signatures import verify  # noqa: PLC0415 -- cryptography is an extra

        verify(registry, reference, digest, key)
    return artifact.fetch(registry, reference, digest)


def _registry(args: argparse.Namespace, reference: Reference) -> Registry:
    login = find_login(reference, docker_config(os.environ, Path.home()))
    return Registry(reference, login, args.timeout, args.ca)


def _private_key(args: argparse.Namespace) -> PrivateKey | None:
    if args.sign_key is None:
        return None
    from gpugate.webhook.bundle.signatures import PrivateKey  # noqa: PLC0415 -- cryptography is an extra

    password = os.environ.get(_PASSWORD)
    secret = password.encode() if password is not None else None
    return PrivateKey(_key(args.sign_key, "--sign-key"), secret, str(args.sign_key))


def _public_key(args: argparse.Namespace) -> PublicKey | None:
    if args.key is None:
        return None
    from gpugate.webhook.bundle.signatures import PublicKey  # noqa: PLC0415 -- cryptography is an extra

    return PublicKey(_key(args.key, "--key"), str(args.key))


def _key(file: Path, flag: str) -> bytes:
    try:
        return read_named(file, _MOST_KEY)
    except OSError as error:
        raise BundleError(f"{flag} {file}: {(error.strerror or 'cannot be read').lower()}") from None


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate bundle",
        description="Push or pull the policy file, the policies that it names and additional schemas, as an artifact in an OCI registry.",
        epilog=_EPILOG,
    )
    commands = command.add_subparsers(dest="command", required=True, metavar="COMMAND")
    push = commands.add_parser(
        "push",
        help="push a bundle, and print its reference with the digest",
        description="Push a bundle, and print its reference with the digest. The same files have the same digest.",
        epilog="examples:\n  gpugate bundle push ghcr.io/acme/gpu-policies:v3 -p policy.yaml\n"
        "  gpugate bundle push ghcr.io/acme/policies:v3 -p policy.yaml --sign-key k.pem",
    )
    push.add_argument("reference", metavar="REFERENCE", help="REGISTRY/REPOSITORY:TAG")
    push.add_argument(
        "-p",
        "--policy-file",
        type=Path,
        required=True,
        metavar="FILE",
        help="policy file; the directories of its `policy_paths`, below its folder, are part of the bundle",
    )
    push.add_argument(
        "--schemas", type=Path, metavar="DIR", help="folder of additional schemas, which becomes `schemas`"
    )
    push.add_argument(
        "--sign-key",
        type=Path,
        metavar="FILE",
        help=f"sign with this private key (ECDSA P-256, PEM); its password is in {_PASSWORD}",
    )
    pull = commands.add_parser(
        "pull",
        help="pull a bundle into a directory",
        description="Pull a bundle into a directory, as a whole or not at all. An earlier bundle there is replaced.",
        epilog="examples:\n  gpugate bundle pull ghcr.io/acme/policies:v3 bundle --key cosign.pub\n"
        "  gpugate check -p bundle/policy.yaml --schemas bundle/schemas manifests",
    )
    verify = commands.add_parser(
        "verify",
        help="show digest, signer and contents of a bundle, and load its policies",
        description="Show digest, signer and contents of a bundle, and load its policies. Python code in it runs only with --key, "
        "after the signature is verified.",
        epilog="examples:\n  gpugate bundle verify ghcr.io/acme/gpu-policies:v3 --key cosign.pub",
    )
    for sub in (pull, verify):
        sub.add_argument(
            "reference", metavar="REFERENCE", help="REGISTRY/REPOSITORY@sha256:..., or with a tag, which can change"
        )
        sub.add_argument(
            "--key", type=Path, metavar="FILE", help="require a signature by this public key (`cosign.pub`)"
        )
    pull.add_argument(
        "directory", type=Path, metavar="DIR", help="directory of the bundle; its parent must be writable"
    )
    for sub in (push, pull, verify):
        sub.add_argument(
            "--timeout",
            type=options.timeout,
            default=30.0,
            metavar="DURATION",
            help="time for each request (default: 30s)",
        )
        sub.add_argument(
            "--ca",
            type=Path,
            metavar="FILE",
            help="certificate authorities of the registry, PEM (default: the system's)",
        )
    return command
