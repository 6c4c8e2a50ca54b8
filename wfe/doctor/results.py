"""What all examinations give: results of checks, with the commands that mend what was found."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from wfe.store.checkup import Result
from wfe.store.invariants import Finding

#: Findings of one check that are named; the others are counted.
NAMED = 10


def result(name: str, claim: str, findings: Iterable[Finding] = ()) -> Result:
    """What a check came to."""
    found = list(findings)
    return Result(name, claim, len(found), found[:NAMED])


def quoted(word: object) -> str:
    """A word of a command line."""
    return shlex.quote(str(word))
