"""What is typed: one module for each command or group of them, and for what such a group holds.

Each reads its arguments, has the library do it, and prints what came of it, by what lies around this folder.

`executions`: `listing`, `show`, `why`, `diff`, `graph`, `following` (events, watch, result), and `mend` (resume,
retry, cancel, delete). `step`: `steps` (list, show). `schedules`: `ledger` (list, show, ticks) and `scheduling`
(pause, resume, delete, trigger, backfill). `workflows`: `check` and `graph`. `help`: `guides` has the longer texts.
"""
