"""The texts of `wfe help environment` and `wfe help recording`."""

from __future__ import annotations

ENVIRONMENT = """\
Each setting comes from the first of these that has it: a flag; a variable; the nearest wfe.toml, or
[tool.wfe] of a pyproject.toml, of this folder or one above; the default. See which: wfe config

  variable              in a file        what it is, and the default
  WFE_APP               app              files, folders and dotted modules to load workflows from; in
                                         the variable separated by ':'; workflows/ of the project
  WFE_DB                db               the database; .wfe/wfe.db of the project
  WFE_COLOR             color            auto, always or never; auto
  WFE_RETENTION         retention        how long finished executions are kept; 30d
  WFE_SYNCHRONOUS       synchronous      full: what is accepted survives a loss of power; normal: the
                                         death of a process, and is faster; full
  WFE_BUSY_TIMEOUT      busy_timeout     how long a locked database is waited for; 5s
  WFE_GRACE             grace            how long running steps may take to end after Ctrl-C; 10s
  WFE_ACCEPT_TIMEOUT    accept_timeout   how long another process may take to accept a command; 30s
  WFE_ON_FINISH         on_finish        a command, or workflow:ID, that is told when executions end;
                                         off: nobody is, whatever a workflow says; not set
  WFE_ON_FINISH_FOR     on_finish_for    of which ends: failed, reverted, timed_out, cancelled, done, or
                                         all; failed,reverted,timed_out
  WFE_ON_FINISH_TIMEOUT on_finish_timeout  how long that command may take; 60s

Durations read 90s, 15m, 2h, 7d, or are seconds. Paths in a file mean its folder, others the current
one. The project is the nearest folder, from this one upwards, with workflows/, wfe.toml or [tool.wfe].

These are looked at, too:

  NO_COLOR, FORCE_COLOR   never colours, always colours; TERM=dumb: no colours, and nothing that moves
  WFE_DEBUG=1             show where an internal error was raised
  TZ                      the zone of times that you type without one
"""

RECORDING = """\
What is written down of an execution, and when:

  Each execution that is begun by a command is recorded step by step. That a step begins is on record
  before its function is called, what it returned before anything that depends on it begins. Whatever
  happens to the process or the machine, the step in flight alone is attempted again, under the same
  idempotency key and with the next number of its attempt: wfe executions resume

  Outputs, inputs and errors are kept as JSON: what the next step receives is the same whether or not
  the process died in between. Up to 64 MB each; for more, write a file and return its path.

  A finished execution is kept for the retention time of its workflow, else for that of the settings
  (30 days), and then removed, in passing or by `wfe gc`. An unfinished one is never removed.

  It is all in one SQLite file, with its log beside it: wfe db info

An Engine in a program of yours does not record plain workflows unless it is told so, with
Engine(store=..., recording=Recording.EVERY_STEP). Without that it keeps those that have a timeout, a
retention time, asynchronous steps, retries after an interval, `store=True` or `idempotent=True`.
"""
