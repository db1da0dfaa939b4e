"""The program `gpugate`: finds the command and runs it.

Only the module of the command that is asked for is imported, so that `--version` and `check` start fast.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate import __version__
from gpugate.webhook.cli.program import called

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Command(NamedTuple):
    """A command: the module below `webhook` that runs it, and one line of help."""

    module: str
    help: str


COMMANDS: Final = {
    "check": _Command("check.command", "check manifests, charts and kustomizations on disk"),
    "test": _Command("testing.command", "run tests of policies and manifests"),
    "audit": _Command("audit.command", "report policy violations and GPU cost in a cluster"),
    "why": _Command("audit.why_command", "show which NodePools can launch a node for a Pod"),
    "simulate": _Command("simulate.command", "show what a candidate policy file would change"),
    "fleet": _Command("fleet.command", "report on many clusters, from the tables of their audits"),
    "catalogue": _Command("audit.catalogue_command", "write the instance types of a cluster's nodes to a file"),
    "bench": _Command("testing.bench_command", "measure how long policies take on your objects"),
    "review": _Command("admission.review_command", "show the admission decision for one object"),
    "explain": _Command("cli.explain", "explain a policy, with examples and parameters"),
    "policies": _Command("cli.policies", "list all policies"),
    "new-policy": _Command("cli.new_policy", "create the files of a policy of your own"),
    "config": _Command("config.command", "show the configuration, create a project file"),
    "bundle": _Command("bundle.command", "push or pull policies as an artifact in an OCI registry"),
    "schema": _Command("cli.schema", "list the schemas that check uses, and add more"),
    "registration": _Command("registration.command", "print the webhook configurations and RBAC to apply"),
    "doctor": _Command("operate.doctor_command", "diagnose an installed webhook"),
    "serve": _Command("admission.serve_command", "serve admission reviews over HTTPS"),
    "webhook": _Command("operate.commands.main", "operate an installed webhook: status, disable, rotate ..."),
    "completion": _Command("cli.completion", "print the completion script of a shell"),
}
# Commands of other tools that users try first.
_MEANT: Final = {
    "lint": "check",
    "validate": "check",
    "verify": "check",
    "scan": "check",
    "diff": "check --diff",
    "fix": "check --fix",
    "init": "config init",
    "show": "config show",
    "list": "policies",
    "rules": "policies",
    "run": "serve",
    "server": "serve",
    "status": "webhook status",
    "disable": "webhook disable",
    "enable": "webhook enable",
    "uninstall": "webhook uninstall",
    "install": "registration",
    "version": "--version",
}
# Shells call it at each press of TAB. The help does not list it, because users do not call it.
_COMPLETE: Final = _Command("cli.completing", "")

_USAGE_ERROR = 2
_INTERRUPTED = 130  # 128 + SIGINT
_BROKEN_PIPE = 141  # 128 + SIGPIPE
# What a command imports and reads stays until its end, and few objects are in reference cycles. With Python's own thresholds
# (700, 10, 10), collections take a tenth of the time of a start and of a check.
_COLLECT_AFTER = (50_000, 20, 100)


def run() -> int:
    """Run the program with the arguments of the process and return its exit code."""
    gc.set_threshold(*_COLLECT_AFTER)
    try:
        code = main(sys.argv[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`head`) has closed the pipe. Without this, Python reports the error again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    name = arguments[0] if arguments else ""
    if name in {"--version", "-V"}:
        print(f"gpugate {__version__}")
        return 0
    if name == "help" and len(arguments) > 1:
        return main([*arguments[1:], "--help"])
    if name in {"--help", "-h", "help", ""}:
        print(called(_help(), COMMANDS))
        return 0 if name else _USAGE_ERROR
    command = _COMPLETE if name == "__complete" else COMMANDS.get(name)
    if command is None:
        print(called(_unknown(name), COMMANDS), file=sys.stderr)
        return _USAGE_ERROR
    return _run(command, arguments[1:])


def _unknown(name: str) -> str:
    """Say that a command is unknown, and on a second line which one may be meant."""
    from gpugate.policies.engine.config import near_misses  # noqa: PLC0415 -- `--version` needs none of it
    from gpugate.webhook.report.plain import plain  # noqa: PLC0415 -- as above

    sort = "flag" if name.startswith("-") else "command"
    meant = _MEANT.get(name) or next(iter(near_misses(name, [*COMMANDS, "--help", "--version"])), "")
    if not meant and os.path.exists(name):  # noqa: PTH110 -- a name that no path can have is no error here
        meant = f"check {name}"
    suggestion = f"did you mean `gpugate {meant}`? " if meant else ""
    return f"error: unknown {sort} {plain(name)}\n{plain(suggestion)}`gpugate --help` lists the commands"


def _run(command: _Command, arguments: Sequence[str]) -> int:
    from gpugate.policies.engine.config import GpugateError  # noqa: PLC0415 -- `--version` needs none of it

    try:
        code: int = import_module(f"gpugate.webhook.{command.module}").main(arguments)
    except GpugateError as error:
        from gpugate.webhook.report.plain import plain  # noqa: PLC0415 -- `--version` needs none of it

        print("\n".join(map(plain, called(f"error: {error}", COMMANDS).split("\n"))), file=sys.stderr)
        return _USAGE_ERROR
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except ModuleNotFoundError as error:
        if not error.name or error.name.startswith("gpugate"):
            raise
        print(
            f"error: {error.name} is not installed\ninstall the extra `webhook`: run `pip install '.[webhook]'` in a checkout of gpugate",
            file=sys.stderr,
        )
        return _USAGE_ERROR
    except Exception:  # noqa: BLE001 -- Python's exit code 1 would mean a denial
        import traceback  # noqa: PLC0415 -- only a bug of gpugate needs it

        traceback.print_exc()
        print("error: this is a bug in gpugate, not in your input", file=sys.stderr)
        return _USAGE_ERROR
    return code


def _help() -> str:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items())
    return f"""Check GPU platforms on Kubernetes against policies: Karpenter, KEDA, DRA, MIG.

usage: gpugate COMMAND [OPTION ...]

commands:
{commands}

options:
  -h, --help     show this help; `gpugate check --help` shows that of a command
  -V, --version  show the version

exit codes:
  0 success; 1 an object would be denied, or reaches --fail-on;
  2 wrong usage or configuration;
  3 nothing to check; 4 an input could not be read or evaluated

examples:
  gpugate check ./manifests
  gpugate explain nodepools/single-instance-type"""


if __name__ == "__main__":
    sys.exit(run())
