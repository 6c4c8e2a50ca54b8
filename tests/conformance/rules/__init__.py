"""Deliberate differences, as rules that rewrite what the recording leads one to expect.

A rule names the decisions it stands for, finds the places they touch in scenario and recording, and
puts there what we do instead. It is exact where the recording says enough to know; where it does not
it puts `ANY`, or cuts the expectation off (`courses`, `races`). Modules run in the order of `_ORDER`,
and their rules from top to bottom: later ones see what earlier ones made.
"""

from __future__ import annotations

from ..case import Case
from . import commands, courses, errors, events, identity, last, races, rows, undo, values
from .rule import REGISTERED, Rule

_ORDER = (errors, undo, identity, commands, values, events, rows, courses, races, last)

RULES: list[Rule] = [
    rule for module in _ORDER for rule in REGISTERED if rule.module == module.__name__
]


def apply_rules(case: Case) -> list[str]:
    """Rewrite what is expected; the names of the rules that changed something."""
    fired = []
    for each in RULES:
        case.changed = False
        each.rewrite(case)
        if case.changed:
            fired.append(each.name)
    case.apply_cuts()
    return fired


__all__ = ["RULES", "Rule", "apply_rules"]
