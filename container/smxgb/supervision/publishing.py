"""Results: the life of their files, from the work that writes them to what SageMaker uploads.

The work writes each beside its place, under a name that begins with `PARTIAL`; the supervisor takes that off
when the job has succeeded. So a job that fails, however late, leaves none of them.
"""

from __future__ import annotations

import shutil
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PARTIAL = ".smxgb-"
"""How the names of results begin until the job has succeeded."""


def unfinished(place: Path) -> Path:
    """Return where the file is written that is to be at `place`."""
    return place.with_name(f"{PARTIAL}{place.name}")


def publish(results: Sequence[Path]) -> None:
    """Give the results their names: a step of the supervisor, which no signal can make fail any more.

    Raises OSError, and leaves none of them, if one can't have its name.
    """
    named: list[Path] = []
    try:
        for path in results:
            place = path.with_name(path.name.removeprefix(PARTIAL))
            path.replace(place)
            named.append(place)
    except OSError:
        for path in named:
            path.unlink(missing_ok=True)
        raise


def finished(folder: Path) -> list[Path]:
    """Return the results in a folder that have their names."""
    with suppress(OSError):
        return sorted(path for path in folder.iterdir() if not path.name.startswith(PARTIAL))
    return []


def remove_unfinished(*folders: Path) -> None:
    """Remove results that have not got their names: all that stands there is uploaded."""
    for path in (path for folder in folders for path in folder.glob(f"{PARTIAL}*")):
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def open_to_all(*folders: Path) -> None:
    """Let everyone read and write the results, as `chmod -R a+rwX`: local mode runs as another user."""
    for folder in folders:
        for place, _, names in folder.walk():
            for path in (place, *(place / name for name in names)):
                with suppress(OSError):
                    mode = path.lstat().st_mode
                    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                        runs = 0o111 if stat.S_ISDIR(mode) or mode & 0o111 else 0
                        path.chmod(stat.S_IMODE(mode) | 0o666 | runs)
