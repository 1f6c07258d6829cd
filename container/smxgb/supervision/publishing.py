"""Publishing: result files get their names only when the whole job has succeeded.

The work writes each file in its folder, under a name that begins with `PARTIAL`. The supervisor removes that
beginning when the job has succeeded. So a job that fails, however late, leaves no results.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import ExitStack, suppress
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PARTIAL = ".smxgb-"
"""The beginning of the names of results until the job has succeeded."""


def unfinished(place: Path) -> Path:
    """Return the path at which to write the file that will be published as `place`."""
    return place.with_name(f"{PARTIAL}{place.name}")


def create(path: Path, *, text: bool = False) -> IO[Any]:
    """Open a new file at `path`, in the place of whatever stands there, to write bytes, or text as UTF-8.

    Others may write in the folder: a link would lead elsewhere, and a FIFO would wait for a reader. With "x"
    the system makes the file itself, or fails (O_EXCL in open(2)).
    """
    with suppress(FileNotFoundError):
        _remove(path)
    return path.open("x", encoding="utf-8", newline="") if text else path.open("xb")


def publish(results: Sequence[Path]) -> None:
    """Rename the results to their final names. The supervisor does it, and no signal can stop it halfway.

    Raises OSError if one can't be renamed; then none is, and what an earlier job has left stands as it was.
    """
    with ExitStack() as undo:
        for path in results:
            place = path.with_name(path.name.removeprefix(PARTIAL))
            earlier = _earlier(path)
            if place.is_file():
                place.replace(earlier)
                undo.callback(earlier.replace, place)
            path.replace(place)
            undo.callback(place.unlink)
        undo.pop_all()
    for path in results:
        with suppress(OSError):
            _earlier(path).unlink()


def _earlier(path: Path) -> Path:
    """Return where an earlier job's result stands while this one's gets its name."""
    return path.with_name(f"{PARTIAL}earlier-{path.name.removeprefix(PARTIAL)}")


def finished(folder: Path) -> list[Path]:
    """Return the published results in a folder."""
    with suppress(OSError):
        return sorted(path for path in folder.iterdir() if not path.name.startswith(PARTIAL))
    return []


def remove_unfinished(*folders: Path) -> None:
    """Remove the results that were not published: SageMaker uploads all that is in these folders."""
    for path in (path for folder in folders for path in folder.glob(f"{PARTIAL}*")):
        with suppress(OSError):
            _remove(path)


def hand_over(owner: Path, *folders: Path) -> None:
    """Give what is in the folders to the owner of another place, and let everyone read it.

    In SageMaker that changes nothing. In local mode the user who has made the job's folders moves and removes
    the results, which are root's. Nobody else may write there: the next job would find what was planted.
    """
    with suppress(OSError):
        given = owner.stat()
        for folder in folders:
            for place, _, names in folder.walk():
                for path in (place, *(place / name for name in names)):
                    with suppress(OSError):
                        _hand_over(path, given)


def _hand_over(path: Path, owner: os.stat_result) -> None:
    found = path.lstat()
    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
        runs = 0o111 if stat.S_ISDIR(found.st_mode) or found.st_mode & 0o111 else 0
        path.chmod(stat.S_IMODE(found.st_mode) | 0o444 | runs)
        if os.geteuid() == 0:
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
