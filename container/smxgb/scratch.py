"""Scratch space: a folder for what does not stay in memory, and the end of those that killed jobs left."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb.environment import can_write, free_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PREFIX = "smxgb-scratch-"
"""How the names of scratch folders begin."""

YOUNG = 60.0
"""Seconds in which a folder may not have been locked yet by the job that has made it."""


def scratch_place(chosen: str | None, base: Path) -> Path:
    """Return where scratch folders are made: `chosen`, else the emptier of the volumes of /tmp and `base`."""
    if chosen:
        return Path(chosen)
    places = [place for place in (Path(tempfile.gettempdir()), base) if can_write(place)]
    return max(places, key=free_bytes, default=base)


@contextmanager
def scratch_folder(chosen: str | None, base: Path, announce: Callable[[Path], None]) -> Iterator[Path]:
    """Make a folder in the place for them; remove it after.

    `announce` is told of the folder, for whoever has to remove it if this process is killed.

    What jobs have left there that could not clean up is removed first, but not in `chosen`: other hosts may
    work there too, and a lock does not reach them through every network file system.
    """
    place = scratch_place(chosen, base)
    if not chosen:
        _remove_abandoned(place)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=place, ignore_cleanup_errors=True) as folder:
        announce(Path(folder))
        with _locked(Path(folder), fcntl.LOCK_EX):
            yield Path(folder)


@contextmanager
def state_folder(restarts: int) -> Iterator[Path | None]:
    """Make a folder for the state of the work, if that may be started again; remove it after."""
    try:
        made = Path(tempfile.mkdtemp(prefix=PREFIX)) if restarts else None
    except OSError:
        made = None
    try:
        with _locked(made, fcntl.LOCK_EX) if made else nullcontext():
            yield made
    finally:
        if made:
            shutil.rmtree(made, ignore_errors=True)


def _remove_abandoned(place: Path) -> None:
    """Remove the scratch folders that no living process holds."""
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if time.time() - folder.lstat().st_mtime > YOUNG:
                with _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    shutil.rmtree(folder)


@contextmanager
def _locked(folder: Path, operation: int) -> Iterator[None]:
    """Hold the lock of a folder, at most until the process ends. Raises OSError if it can't be had."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, operation)
        yield
    finally:
        os.close(handle)
