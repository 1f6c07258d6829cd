"""The machine, or the part of it that a container may use: processors, memory, GPUs.

Each function takes the root of `/proc`, `/sys` and `/dev` as a path, so that a folder of plain files can
stand for any machine.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from smxgb.environment import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """What this host offers to the job.

    `memory_limit` is in bytes, the smaller of the machine's memory and the limits of its control groups, and
    `memory_limit_source` says which one it is. `memory_available` is how many bytes of it are not in use yet;
    page cache counts as free. Each of `gpus` is a value for CUDA_VISIBLE_DEVICES. `image` is version, variant
    and commit of the image that this runs in, None outside.
    """

    threads: int
    memory_limit: int
    memory_limit_source: Literal["cgroup", "machine"]
    memory_available: int
    gpus: tuple[str, ...]
    image: str | None = None


def read_machine(environ: Mapping[str, str], root: Path = ROOT) -> Machine:
    """Return the processors, memory and GPUs that this process may use. What can't be read sets no limit."""
    total, _ = _machine_memory(root)
    limit = min([total, *(limit for limit, _ in _cgroup_memory(root))])
    return Machine(
        threads=max(1, min([len(os.sched_getaffinity(0)), *_cgroup_processors(root)])),
        memory_limit=limit,
        memory_limit_source="cgroup" if limit < total else "machine",
        memory_available=memory_available(root),
        gpus=_gpus(environ, root),
        image=environ.get("SMXGB_IMAGE"),
    )


def memory_available(root: Path = ROOT) -> int:
    """Return how many bytes of memory this process can still take at this moment; page cache is free."""
    _, available = _machine_memory(root)
    return min([available, *(max(limit - used, 0) for limit, used in _cgroup_memory(root))])


def oom_kills(root: Path = ROOT) -> int:
    """Return how many processes of this control group the kernel has killed for want of memory; 0 if unknown.

    Only the innermost group is asked: a count of one further out rises with the deaths of strangers too.
    """
    for folder in _cgroup_folders(root, "memory"):
        for name in ("memory.events", "memory.oom_control"):
            count = _fields(folder / name).get("oom_kill")
            if count is not None:
                return count
    return 0


def _machine_memory(root: Path) -> tuple[int, int]:
    """Return how many bytes the machine has, and how many of them are free or hold page cache."""
    kib = _fields(root / "proc/meminfo")
    total = (
        kib["MemTotal:"] * 1024
        if "MemTotal:" in kib
        else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    )
    return total, min(total, kib["MemAvailable:"] * 1024) if "MemAvailable:" in kib else total


def _cgroup_memory(root: Path) -> Iterator[tuple[int, int]]:
    """Yield limit and use, in bytes, of each control group that limits this process's memory."""
    for folder in _cgroup_folders(root, "memory"):
        limit = _number(folder, "memory.max", "memory.limit_in_bytes")
        if limit is not None:
            # The two lists of file pages can be dropped at any time; files in memory (tmpfs) are not on them.
            stat = _fields(folder / "memory.stat")
            cache = sum(
                stat.get(f"total_{name}", stat.get(name, 0)) for name in ("active_file", "inactive_file")
            )
            used = _number(folder, "memory.current", "memory.usage_in_bytes") or 0
            yield limit, max(used - cache, 0)


def _cgroup_processors(root: Path) -> Iterator[int]:
    """Yield the number of threads that each control group's quota of processor time can feed.

    A part of a processor counts as one: at 1.5, two threads that are held back a quarter of the time get more
    done than one thread.
    """
    for folder in _cgroup_folders(root, "cpu"):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        if not quota:
            quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
        if quota.isdecimal() and period.isdecimal() and int(period):
            yield -(-int(quota) // int(period))


def _cgroup_folders(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control group and of all around it, innermost first, v1 and v2.

    Inside a container `/proc/self/cgroup` may name the group as the host sees it while only the container's
    own is mounted, so the mount itself always comes last, and folders that do not exist are for the reader to
    skip (https://docs.kernel.org/admin-guide/cgroup-v2.html, cgroup-v1/memory.html).
    """
    own = {}
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2) if line.count(":") > 1 else ("", "", "/")
        own.update(dict.fromkeys(controllers.split(","), path))
    for mount, path in (
        (root / "sys/fs/cgroup" / controller, own.get(controller, "/")),
        (root / "sys/fs/cgroup", own.get("", "/")),
    ):
        names = [name for name in path.split("/") if name]
        for depth in range(0 if ".." in names else len(names), -1, -1):
            yield mount.joinpath(*names[:depth])


def _gpus(environ: Mapping[str, str], root: Path) -> tuple[str, ...]:
    """Return the GPUs that CUDA would show, without loading it.

    CUDA_VISIBLE_DEVICES counts as CUDA reads it: the list ends at the first entry that is no GPU.
    """
    if environ.get("NVIDIA_VISIBLE_DEVICES", "all").strip().lower() in {"", "none", "void"}:
        return ()
    present = [str(number) for number, _ in enumerate(_gpu_devices(root))]
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None or not present:
        return tuple(present)
    visible: list[str] = []
    for entry in map(str.strip, listed.split(",")):
        if entry in visible or not (entry in present or entry.startswith(("GPU-", "MIG-"))):
            break
        visible.append(entry)
    return tuple(visible)


def _gpu_devices(root: Path) -> list[str]:
    """Return the names of the device files with a number; the others are the driver's own."""
    with suppress(OSError):
        names = [path.name for path in (root / "dev").iterdir()]
        return [name for name in names if name.startswith("nvidia") and name[len("nvidia") :].isdecimal()]
    return []


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace").strip()
    except OSError:
        return ""


def _number(folder: Path, *names: str) -> int | None:
    """Return the number in the first of these files that holds one."""
    for name in names:
        text = _text(folder / name)
        if text.isdecimal():
            return int(text)
    return None


def _fields(path: Path) -> dict[str, int]:
    """Return the numbers of a file with a name and a number on each line."""
    rows = (line.split() for line in _text(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}
