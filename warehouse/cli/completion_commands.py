"""Command `warehouse completion`: Tab completion for bash, zsh and fish."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from warehouse.cli.options import Commands, command

SHELLS = ("bash", "zsh", "fish")
_BASH = """\
_warehouse() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "{commands}" -- "$word"))
    return
  fi
  case ${{COMP_WORDS[COMP_CWORD-1]}} in
    -q|--query) COMPREPLY=($(compgen -W "{queries}" -- "$word")); return ;;
  esac
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _warehouse warehouse
"""


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    one = command(
        commands,
        "completion",
        "print the Tab completion script of a shell",
        "warehouse completion fish > ~/.config/fish/completions/warehouse.fish\n"
        "  source <(warehouse completion bash)          # in ~/.bashrc; zsh: in ~/.zshrc",
    )
    one.add_argument("shell", choices=SHELLS)
    one.set_defaults(run=run_completion)


def run_completion(given: argparse.Namespace) -> int:
    """Print the completion script of a shell."""
    from warehouse.cli import parser

    known = dict(_options(parser()))
    queries = _queries()
    print("\n".join(_fish(known, queries)) if given.shell == "fish" else _bash(known, queries, given.shell))  # noqa: T201
    return 0


def _options(top: argparse.ArgumentParser) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each command with its long options and their help."""
    [below] = [one for one in top._actions if isinstance(one, argparse._SubParsersAction)]  # noqa: SLF001 - no other way
    for name, one in below.choices.items():
        yield (
            name,
            {
                word: (action.help or "").replace("%%", "%")
                for action in one._actions  # noqa: SLF001
                for word in action.option_strings
                if word.startswith("--")
            },
        )


def _queries() -> list[str]:
    from warehouse.project.project import Project

    return sorted(path.stem for folder in Project.open().query_folders for path in Path(folder).glob("*.sql"))


def _bash(known: Mapping[str, Mapping[str, str]], queries: list[str], shell: str) -> str:
    cases = "\n".join(f'    {name}) words="{" ".join(options)}" ;;' for name, options in known.items())
    script = _BASH.format(commands=" ".join(known), queries=" ".join(queries), cases=cases)
    return f"autoload -U +X bashcompinit && bashcompinit\n{script}" if shell == "zsh" else script


def _fish(known: Mapping[str, Mapping[str, str]], queries: list[str]) -> Iterator[str]:
    yield f"complete -c warehouse -f -n __fish_use_subcommand -a '{' '.join(known)}'"
    for name, options in known.items():
        for option, about in options.items():
            text = about.replace("\\", "\\\\").replace("'", "\\'")
            condition = f"'__fish_seen_subcommand_from {name}'"
            yield f"complete -c warehouse -n {condition} -l {option.removeprefix('--')} -d '{text}'"
    yield f"complete -c warehouse -f -n '__fish_seen_subcommand_from sql' -s q -l query -x -a '{' '.join(queries)}'"
