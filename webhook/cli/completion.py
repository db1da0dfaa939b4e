"""`gpugate completion`: print the completion script of a shell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cli.options import Parser, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_FILES: Final = {
    "bash": "gpugate.bash",
    "zsh": "gpugate.zsh",
    "fish": "gpugate.fish",
    "powershell": "gpugate.ps1",
    "kubectl": "kubectl_complete-gpugate",
}
_EPILOG: Final = """examples:
bash, in ~/.bashrc:
  source <(gpugate completion bash)
zsh, in ~/.zshrc after compinit:
  source <(gpugate completion zsh)
fish, once:
  gpugate completion fish > ~/.config/fish/completions/gpugate.fish
PowerShell, in $PROFILE:
  gpugate completion powershell | Out-String | Invoke-Expression
kubectl 1.26 or newer, if pip did not install kubectl_complete-gpugate in PATH:
  gpugate completion kubectl > ~/.local/bin/kubectl_complete-gpugate
  chmod +x ~/.local/bin/kubectl_complete-gpugate"""


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = parser().parse_args(arguments)
    print(script(args.shell), end="")
    return 0


def script(shell: str) -> str:
    """Return the script of a shell. It calls `gpugate` at each press of TAB, so it stays valid after upgrades.

    Raises:
        UsageError: the script is not installed, as in the container image, which has no shell.
    """
    file = Path(__file__).with_name("shells") / _FILES[shell]
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"completion for {shell} is not part of this image: install gpugate with pip") from None


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate completion",
        description="Print a script that completes commands, flags, formats and policy ids in a shell.",
        epilog=_EPILOG,
    )
    command.add_argument("shell", choices=tuple(_FILES), help="shell, or kubectl for `kubectl gpugate`")
    return command
