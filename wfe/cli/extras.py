"""Packages that only a flag needs: whether they are there, and how to get them."""

from __future__ import annotations

from importlib.util import find_spec

from wfe.errors import UsageError


def check_installed(flag: str, module: str, package: str, extra: str) -> None:
    """
    Raises:
        UsageError: the package that `flag` needs is not installed.
    """
    try:
        found = find_spec(module)
    except ModuleNotFoundError:  # of what is around it
        found = None
    if found is None:
        raise UsageError(
            f"{flag} needs the package {package}, which is not installed.",
            hint=f"Install it: pip install 'wfe[{extra}]'",
        )
