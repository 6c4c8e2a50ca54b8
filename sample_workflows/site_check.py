"""Site check: look at the pages of a site side by side; where some are down, wait and look again.

    python3 -m http.server 8000 &                           in the clone, so that all pages are there
    wfe run site-check -p base=http://localhost:8000        {"up":4,"down":[]}
    wfe run site-check -p base=http://localhost:8001 -p pause=2       nobody listens: all are down

It takes the place of a loop around curl in a crontab. A page that does not answer is asked three
times, one that is missing only once, and neither ends the others: `continue_on_permanent_failure`
lets the workflow go on, and what the failed step returned is None for those after it. So the exit
code is 0, and the result says what is down.

To be told, register a handler in a module beside this one:

    from site_check import Outage, site_check

    @site_check.hooks.outage
    def tell(outage: Outage) -> None:
        ...

When a check fails, `wfe executions show site-check:TX` says what each page answered.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from dataclasses import dataclass

from wfe import (
    PermanentStepFailure,
    StepContext,
    WorkflowResponse,
    hook,
    parallel,
    sleep,
    step,
    transform,
    when,
    workflow,
)

#: The step → the page that it looks at. A body is composed once: this cannot depend on the input.
PAGES = {
    "start": "/",
    "readme": "/README.md",
    "samples": "/sample_workflows/",
    "weather": "/sample_workflows/data/seattle-weather.csv",
}


@dataclass(frozen=True)
class Request:
    #: Such as http://localhost:8000
    base: str
    #: Seconds before those that are down are looked at again; no false alarm for a short restart.
    pause: float = 60
    #: Seconds in which a page has to answer.
    patience: float = 5


@dataclass(frozen=True)
class Page:
    status: int
    bytes: int
    milliseconds: int


@dataclass(frozen=True)
class Outage:
    base: str
    #: The paths of the pages that are down.
    pages: list[str]


@step(
    max_retries=2,
    retry_interval=1,
    retry_backoff=2,
    continue_on_permanent_failure=True,
    pure=True,
)
def check(ctx: StepContext, request: Request, path: str) -> Page:
    began = time.monotonic()
    url = request.base.rstrip("/") + path
    try:
        with urllib.request.urlopen(url, timeout=request.patience) as answer:
            size = len(answer.read())
    except urllib.error.HTTPError as error:
        error.close()
        reason = f"{url}: {error.code} {error.reason}"
        if error.code < 500:  # asking again would not help
            raise PermanentStepFailure(reason) from error
        raise ConnectionError(reason) from error
    milliseconds = round((time.monotonic() - began) * 1000)
    ctx.logger.info("%s: %d bytes in %d ms", url, size, milliseconds)
    return Page(answer.status, size, milliseconds)


def check_again(request: Request, name: str, path: str, page: Page | None) -> Page | None:
    """For a body: a second look at a page that was down."""
    return when(page, lambda page: page is None, name=f"{name}-was-down").then(
        lambda: check.config(name=f"{name}-again")(request, path)
    )


def down(*looks: list[Page | None]) -> list[str]:
    """The pages that no look has found up."""
    return [path for path, *found in zip(PAGES.values(), *looks, strict=True) if not any(found)]


def summary(down: list[str]) -> dict[str, object]:
    return {"up": len(PAGES) - len(down), "down": down}


@workflow("site-check", description="Look at the pages of a site, twice where some are down")
def site_check(request: Request) -> WorkflowResponse[dict[str, object]]:
    first = parallel([check.config(name=name)(request, path) for name, path in PAGES.items()])
    with when(transform(first, fn=down), name="some-are-down"):
        sleep(request.pause, name="pause")
    again = parallel(
        [
            check_again(request, name, path, page)
            for (name, path), page in zip(PAGES.items(), first, strict=True)
        ]
    )
    still_down = transform(first, again, fn=down)
    with when(still_down, name="outage"):
        outage = hook("outage", Outage(request.base, still_down))
    return WorkflowResponse(transform(still_down, fn=summary), hooks=[outage])
