"""The scripts that let bash, zsh and fish complete, and where they go.

They are ours, not Typer's: a key has colons, which bash takes for the ends of words; and what is stored
is handed to the shell as data, where Typer has zsh evaluate it. Each asks `wfe` for lines of a value and,
behind a tab, what it is; one without a value for the word leaves it to the files.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from wfe.errors import UsageError

_ASK = "_WFE_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args _TYPER_COMPLETE_ARGS"

_BASH = f"""\
# Completion of wfe for bash.
_wfe_completion() {{
    local line="${{COMP_LINE:0:COMP_POINT}}" word typed="" value
    word="${{line##*[[:space:]]}}"
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        typed="${{word%"${{word##*:}}"}}"
    fi
    COMPREPLY=()
    while IFS= read -r value; do
        value="${{value%%$'\\t'*}}"
        [[ -n $value ]] || continue
        printf -v value '%q' "$value"
        COMPREPLY+=("${{value#"$typed"}}")
    done < <(env {_ASK}="$line" "$1" 2>/dev/null)
}}
complete -o nosort -o default -F _wfe_completion wfe 2>/dev/null ||
    complete -o default -F _wfe_completion wfe
"""

_ZSH = f"""\
#compdef wfe
# Completion of wfe for zsh.
_wfe_completion() {{
    local line
    local -a values shown
    for line in "${{(@f)$(env {_ASK}="${{(j: :)words[1,CURRENT]}}" wfe 2>/dev/null)}}"; do
        [[ -n $line ]] || continue
        values+=("${{line%%$'\\t'*}}")
        shown+=("${{line/$'\\t'/  -- }}")
    done
    if (( $#values )); then
        compadd -V wfe -l -d shown -a -- values
    else
        _files
    fi
}}
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit; }}
if [[ ${{zsh_eval_context[-1]}} == loadautofunc ]]; then
    _wfe_completion "$@"
else
    compdef _wfe_completion wfe
fi
"""

_FISH = f"""\
# Completion of wfe for fish.
function __wfe_complete
    set -l found (env {_ASK}=(commandline -cp) wfe 2>/dev/null)
    if test (count $found) -gt 0 -a -n "$found[1]"
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete --command wfe --no-files --keep-order --arguments '(__wfe_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


class Installed(NamedTuple):
    """Where the script of a shell is, and the file that has the shell read it; None: it does so by
    itself."""

    script: Path
    read_by: Path | None


def script(shell: str) -> str:
    """The script of a shell.

    Raises:
        UsageError: a shell that there is none for.
    """
    if shell not in SCRIPTS:
        raise UsageError(
            f"There is no completion for the shell {shell!r}.",
            hint=f"There is one for: {', '.join(SCRIPTS)}.",
        )
    return SCRIPTS[shell]


def install(shell: str, environ: Mapping[str, str], home: Path) -> Installed:
    """Put the script of a shell where it is read whenever one begins; idempotent.

    Raises:
        UsageError: a shell that there is none for.
        OSError: a file that cannot be written.
    """
    content = script(shell)
    if shell == "fish":
        config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
        path, read_by = config / "fish" / "completions" / "wfe.fish", None
    else:
        data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        path = data / "wfe" / f"completion.{shell}"
        folder = Path(environ.get("ZDOTDIR") or home) if shell == "zsh" else home
        read_by = folder / f".{shell}rc"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    if read_by is not None:
        name = shlex.quote(str(path))
        _add_line(read_by, f"[ -r {name} ] && . {name}")
    return Installed(path, read_by)


def _add_line(file: Path, line: str) -> None:
    """At its end, unless it is in there."""
    content = file.read_text(encoding="utf-8") if file.exists() else ""
    if line in content.splitlines():
        return
    begin = "" if content.endswith("\n") or not content else "\n"
    with file.open("a", encoding="utf-8") as opened:
        opened.write(f"{begin}{line}\n")


def present(environ: Mapping[str, str]) -> str:
    """The shell that this process was called from; else the user's.

    Raises:
        UsageError: neither is known.
    """
    import shellingham  # type: ignore[import-untyped]  # Typer brings it; it has no types

    try:
        name = str(shellingham.detect_shell()[0])
    except shellingham.ShellDetectionFailure:
        name = os.path.basename(environ.get("SHELL", ""))  # noqa: PTH119 a text, perhaps empty
    if not name:
        raise UsageError(
            "Your shell is not known.", hint="Name it: wfe --install-completion bash, zsh or fish."
        )
    return name
