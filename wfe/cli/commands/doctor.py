"""`wfe doctor`: what is wrong with a project, and the commands that mend it."""

from __future__ import annotations

import shlex
import sys

from wfe.cli.command import alone, command
from wfe.cli.exit_codes import ExitCode
from wfe.cli.session import Session

app = alone()


@command(app, "doctor", formats=("table", "json"))
def doctor(session: Session) -> int:
    """Look the database, the workflows and this machine through, and say what to do about what is
    wrong. Changes nothing, and runs no step. Ends with 1 where something was found.

    In a pipe: `ok` or `wrong`, the check, its claim and how many findings there are, separated by tabs;
    then a line for each finding: what it is, the key it is about, the command that mends it.

    \b
    wfe doctor
    wfe doctor -o json
    """
    from wfe.cli import checks, output
    from wfe.cli.failures import Failure
    from wfe.clock import SystemClock
    from wfe.doctor.examination import examine
    from wfe.store.checkup import Result

    def mended(result: Result) -> Result:
        findings = [
            one._replace(mend=_with_flags(session, one.mend)) if one.mend else one
            for one in result.findings
        ]
        return result._replace(findings=findings)

    screen = checks.screen_of(session)
    results = []
    for result in examine(session.config, SystemClock().now(), session.catalog):
        results.append(mended(result))
        checks.show(session, screen, results[-1])
    found = sum(result.found for result in results)
    failure = None
    if found:
        failure = Failure(f"{found} finding{'s' * (found != 1)}.", code="findings")
    if session.output == "json":
        outcome = {"ok": True} if failure is None else failure.document()
        output.print_json({**outcome, "checks": [checks.document(one) for one in results]})
    if failure is None:
        return ExitCode.OK
    failure.tell(color=session.colors(sys.stderr))
    return failure.exit_code


def _with_flags(session: Session, mend: str) -> str:
    """A command of ours for the same database and modules; any other as it is."""
    words = shlex.split(mend)
    return session.command(*words[1:]) if words[0] == "wfe" else mend
