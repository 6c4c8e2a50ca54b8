"""A trial of what was built: the wheel in an environment of its own makes the weather report.

    python workflows/_trial.py dist/.v0.1.0

The samples are those of the source archive, so that it is tried, too; nothing of the clone is used, and
no setting of whoever runs this. Everything is done in a folder that is gone afterwards.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ANSWER = '{"approved": true, "by": "the trial"}'


def run(folder: Path, *command: str | Path, code: int = 0) -> str:
    """What a program prints. SystemExit: it ended with another code."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("WFE_", "PYTHON", "VIRTUAL_ENV"))
    }
    ended = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if ended.returncode != code:
        sys.exit(f"{' '.join(map(str, command))} ended with {ended.returncode}, not {code}")
    return ended.stdout.strip()


def main(built: Path) -> None:
    [wheel], [archive] = built.glob("*.whl"), built.glob("*.tar.gz")
    with TemporaryDirectory() as name:
        folder = Path(name)
        run(folder, "tar", "-xzf", archive)
        [source] = folder.iterdir()
        run(folder, sys.executable, "-m", "venv", "venv")
        pip = (folder / "venv/bin/python", "-m", "pip", "--disable-pip-version-check")
        run(folder, *pip, "install", "--quiet", wheel)
        wfe = folder / "venv/bin/wfe"
        asked = run(
            source, wfe, "run", "weather-report", "--tx", "1", "--until", "waiting", code=20
        )
        run(source, wfe, "step", "succeed", asked, "--response", ANSWER)
        size = (source / "out/weather-report.html").stat().st_size
        print(f"{wheel.name} has made a weather report of {size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
