"""Publishing: result files get their names only when the whole job has succeeded.

The work writes each file in its folder, under a name that begins with `PARTIAL`. The supervisor removes that
beginning when the job has succeeded. So a job that fails, however late, leaves no results.
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
"""The beginning of the names of results until the job has succeeded."""


def unfinished(place: Path) -> Path:
    """Return the path at which to write the file that will be published as `place`."""
    return place.with_name(f"{PARTIAL}{place.name}")


def publish(results: Sequence[Path]) -> None:
    """Rename the results to their final names. The supervisor does it, and no signal can stop it halfway.

    Raises OSError if one can't be renamed, and removes those that were.
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
    """Return the published results in a folder."""
    with suppress(OSError):
        return sorted(path for path in folder.iterdir() if not path.name.startswith(PARTIAL))
    return []


def remove_unfinished(*folders: Path) -> None:
    """Remove the results that were not published: SageMaker uploads all that is in these folders."""
    for path in (path for folder in folders for path in folder.glob(f"{PARTIAL}*")):
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def open_to_all(*folders: Path) -> None:
    """Let everyone read and write the results, as `chmod -R a+rwX`: local mode reads them as another user."""
    for folder in folders:
        for place, _, names in folder.walk():
            for path in (place, *(place / name for name in names)):
                with suppress(OSError):
                    mode = path.lstat().st_mode
                    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                        runs = 0o111 if stat.S_ISDIR(mode) or mode & 0o111 else 0
                        path.chmod(stat.S_IMODE(mode) | 0o666 | runs)
