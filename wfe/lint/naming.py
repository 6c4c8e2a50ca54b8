"""Names that are allowed, and a nuisance: where keys are typed, and where they are read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from wfe.authoring.places import Place
from wfe.authoring.workflows import Workflow
from wfe.lint.findings import Said, of_step
from wfe.model import Action

#: What a shell takes as it is.
_UNQUOTED = re.compile(r"[\w.@%+=,/-]+")
#: A key is four names long, and has to be read on one line.
_LONG = 60


def awkward(workflow: Workflow[Any, Any], now: datetime) -> Iterator[Said]:
    """Names that are hard to type or to read."""
    file, line = workflow.source
    for why in _nuisances(workflow.id, is_workflow=True):
        yield Said(f"The workflow {workflow.id!r} {why}.", "", Place(file, line))
    for node in workflow.nodes.values():
        for why in _nuisances(node.spec.name, is_workflow=False):
            yield of_step(node, f"The step {node.spec.name!r} of {workflow.id!r} {why}.")


def alike_steps(workflow: Workflow[Any, Any], now: datetime) -> Iterator[Said]:
    """Steps of one workflow whose names are easily mistaken for each other."""
    for name, other in pairs_alike(workflow.nodes):
        node = workflow.nodes[name]
        yield of_step(node, f"The steps {other!r} and {name!r} of {workflow.id!r} are named alike.")


def pairs_alike(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each name that differs from an earlier one only in case, in what stands between its words, or in
    how its letters are composed; and that one."""
    seen: dict[str, str] = {}
    for name in names:
        plain = unicodedata.normalize("NFKC", name).casefold()
        plain = re.sub(r"[\s_-]", "", "".join(c for c in plain if unicodedata.category(c) != "Cf"))
        other = seen.setdefault(plain, name)
        if other != name:
            yield name, other


def _nuisances(name: str, *, is_workflow: bool) -> Iterator[str]:
    """What is wrong with a name, as the end of a sentence."""
    if name.startswith("-"):
        yield "begins with '-': a command line takes it for an option"
    if any(unicodedata.category(c) == "Cf" for c in name):
        yield "holds characters that nobody sees"
    elif not _UNQUOTED.fullmatch(unicodedata.normalize("NFC", name)):
        yield "has to be quoted in every shell: letters, digits, '-', '_' and '.' do not"
    if not unicodedata.is_normalized("NFC", name):
        yield "is written in decomposed letters: typed, it is another name"
    if len(name) > _LONG:
        yield f"has a name of {len(name)} characters, which no line holds together with its key"
    if is_workflow and name.endswith(".py"):
        yield "ends with '.py': a command line takes it for a file"
    if not is_workflow and name in (Action.INVOKE, Action.COMPENSATE):
        yield "is called like an action: the last part of a key may then mean either"
