"""The program `gpugate`: finds the command and runs it.

Only the module of the command that is asked for is imported, so that `--version` and `check` start fast.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from gpugate import __version__
from gpugate.webhook.cli.program import called

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class _Command:
    """A command: the module below `webhook/cli` that runs it, and one line of help."""

    module: str
    help: str


COMMANDS: Final = {
    "check": _Command("check", "what admission would do with the manifests in files and directories"),
    "test": _Command(
        "test", "whether policies and manifests do what their tests say; *.gpugate-test.yaml, `# expect:`"
    ),
    "audit": _Command(
        "audit", "what is wrong with what a cluster has, what enforcement would break, and what it costs"
    ),
    "review": _Command("review", "what admission would do with one object: decision, patch, warnings"),
    "explain": _Command("explain", "why a policy exists, with examples and its parameters"),
    "policies": _Command("policies", "every policy there is"),
    "config": _Command(
        "config", "the configuration in force (show), a first project file (init), JSON schemas (schema)"
    ),
    "schema": _Command("schema", "the schemas of kinds that manifests are held against (list), and further ones (add)"),
    "registration": _Command("registration", "what makes an API server ask the webhook: objects for kubectl apply"),
    "doctor": _Command("doctor", "what is wrong with an installed webhook, and what to do about it"),
    "serve": _Command("serve", "answer admission reviews over HTTPS (the container's entry point)"),
    "webhook": _Command(
        "webhook.main", "look after an installed webhook: status, wait, disable (break-glass), enable ..."
    ),
    "completion": _Command("completion", "what makes bash, zsh, fish, PowerShell and kubectl complete command lines"),
}
# What shells ask at each press of TAB; not for people, so no help lists it.
_COMPLETE: Final = _Command("completing", "")

_USAGE_ERROR = 2
_INTERRUPTED = 130  # 128 + SIGINT
_BROKEN_PIPE = 141  # 128 + SIGPIPE


def run() -> int:
    """Run the program with the arguments of the process and return its exit code."""
    try:
        code = main(sys.argv[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read us (`head`) has gone; Python would complain about it once more when it exits.
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
    if name in {"--help", "-h", "help", ""}:
        print(called(_help()))
        return 0 if name else _USAGE_ERROR
    command = _COMPLETE if name == "__complete" else COMMANDS.get(name)
    if command is None:
        print(called(f"error: no command is called {name}; `gpugate --help` lists them"), file=sys.stderr)
        return _USAGE_ERROR
    return _run(command, arguments[1:])


def _run(command: _Command, arguments: Sequence[str]) -> int:
    from gpugate.policies.engine.config import GpugateError  # noqa: PLC0415 -- `--version` needs none of it

    try:
        code: int = import_module(f"gpugate.webhook.cli.{command.module}").main(arguments)
    except GpugateError as error:
        from gpugate.webhook.report.plain import plain  # noqa: PLC0415 -- `--version` needs none of it

        print("\n".join(map(plain, called(f"error: {error}").split("\n"))), file=sys.stderr)
        return _USAGE_ERROR
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except ModuleNotFoundError as error:
        if not error.name or error.name.startswith("gpugate"):
            raise
        print(
            f"error: {error.name} is not installed: install gpugate with its extra `webhook`: `pip install '.[webhook]'` in its checkout",
            file=sys.stderr,
        )
        return _USAGE_ERROR
    except Exception:  # noqa: BLE001 -- Python's own exit code would say that something was denied
        import traceback  # noqa: PLC0415 -- only a mistake of ours needs it

        traceback.print_exc()
        print("error: this is a mistake in gpugate, not in what you gave it", file=sys.stderr)
        return _USAGE_ERROR
    return code


def _help() -> str:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items())
    return f"""Policy checks for GPU platforms on Kubernetes: Karpenter, KEDA, DRA and MIG.

usage: gpugate COMMAND [ARGUMENT ...]

{commands}

  -h, --help     this text, or that of a command: gpugate check --help
  -V, --version  the version

Exit codes: 0 fine; 1 something would be denied; 2 wrong usage or configuration; 3 nothing to check; 4 something could
not be read or judged.

Start here:
  gpugate check ./manifests
  gpugate explain nodepools/single-instance-type"""


if __name__ == "__main__":
    sys.exit(run())
