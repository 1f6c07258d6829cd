"""What surrounds the job: SageMaker's folders and hosts, and the machine's processors, memory and GPUs.

The only module that looks at environment variables. Each function takes them as a mapping, and the root of
`/proc`, `/sys` and `/dev` as a path, so that a folder of plain files can stand for any machine.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from smxgb.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path("/")


@dataclass(frozen=True)
class Paths:
    """The folders that SageMaker shares with the container."""

    base: Path

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Paths:
        """Return the folders below `SAGEMAKER_BASE_DIR` (the training toolkit's name), else `/opt/ml`."""
        return cls(Path(environ.get("SAGEMAKER_BASE_DIR") or "/opt/ml"))

    @property
    def config(self) -> Path:
        """Where the JSON files stand that describe the job."""
        return self.base / "input" / "config"

    @property
    def data(self) -> Path:
        """Where each channel has its folder."""
        return self.base / "input" / "data"

    @property
    def model(self) -> Path:
        """What becomes model.tar.gz."""
        return self.base / "model"

    @property
    def output(self) -> Path:
        """Where the failure file and the output data stand."""
        return self.base / "output"

    @property
    def output_data(self) -> Path:
        """What becomes output.tar.gz."""
        return self.output / "data"

    @property
    def failure(self) -> Path:
        """The file whose first 1,024 characters SageMaker shows as FailureReason."""
        return self.output / "failure"


@dataclass(frozen=True)
class Hosts:
    """The hosts of the job: this one, and the sorted names of all, the first of which leads.

    `interface` is what SageMaker calls the network interface; it need not exist.
    """

    current: str
    names: tuple[str, ...]
    interface: str | None = None


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


def process_environ() -> dict[str, str]:
    """Return the environment variables of this process."""
    return dict(os.environ)


def in_container(root: Path = ROOT) -> bool:
    """Return whether this process runs in a Docker or Podman container."""
    return any((root / mark).exists() for mark in (".dockerenv", "run/.containerenv"))


def child_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of the process that does the work; what the user has set stays."""
    defaults = {
        # Idle OpenMP threads spin by default: on a busy processor that made a training several times slower.
        "OMP_WAIT_POLICY": "passive",
        # Arrow's own default keeps a third more memory after reading a table.
        "ARROW_DEFAULT_MEMORY_POOL": "jemalloc",
        # A crash in native code then shows the Python lines that led to it.
        "PYTHONFAULTHANDLER": "1",
    }
    return defaults | dict(environ)


def nccl_environ(hosts: Hosts, log: Path, root: Path = ROOT) -> dict[str, str]:
    """Return the environment variables of NCCL, through which GPUs speak to each other.

    Its warnings go to the file `log`. Between hosts it uses the interface that SageMaker names, if there is
    one of that name: SDK v3 names one that need not exist.
    """
    variables = {"NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": str(log)}
    if len(hosts.names) > 1 and hosts.interface and (root / "sys/class/net" / hosts.interface).exists():
        variables["NCCL_SOCKET_IFNAME"] = hosts.interface
    return variables


def set_unset(variables: Mapping[str, str]) -> None:
    """Set environment variables of this process, where libraries look; what the user has set stays."""
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file of SageMaker's configuration; a missing or empty file is an empty object.

    Raises UserError naming file, line and column if it holds anything else.
    """
    if path.is_dir():
        raise UserError(
            f"{path} is a folder, not a file. Docker makes one if the file to be mounted is missing: "
            "check the path on the host."
        )
    if path.is_symlink() and not path.exists():
        raise UserError(
            f"{path} is a link to {path.readlink()}, which is not there: link to a file, or remove it."
        )
    # To open a FIFO would wait for a writer that may never come.
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is a FIFO, a socket or a device: it must be a plain file.")
    try:
        text = path.read_bytes().decode("utf-8-sig")
        value = json.loads(text, object_pairs_hook=partial(_unique, path)) if text.strip() else {}
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: byte {error.start + 1} is not UTF-8. Save the file as UTF-8 text."
        ) from None
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}, line {error.lineno}, column {error.colno}: this is not JSON ({error.msg}). "
            'The file must hold one object, such as {"name": "value"}.'
        ) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: this is not JSON that can be read ({error}).") from None
    if not isinstance(value, dict):
        raise UserError(
            f"{path}, line 1, column 1: the file holds {_json_type(value)}. "
            'It must hold one object, such as {"name": "value"}.'
        )
    return value


def _unique(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return one object of a file; of a name that stands there twice, JSON itself would take the last."""
    twice = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    if twice:
        raise UserError(
            f"{path}: {', '.join(map(repr, twice))} stands there more than once: keep one of them."
        )
    return dict(pairs)


def read_hosts(paths: Paths) -> Hosts:
    """Return the hosts that resourceconfig.json names; without the file, or with no host in it, there is one.

    Raises UserError if the file can't be read, or does not say which of several hosts this one is.
    """
    path = paths.config / "resourceconfig.json"
    config = read_json(path)
    hosts = config.get("hosts") or []
    current = config.get("current_host")
    interface = config.get("network_interface_name")
    if not (isinstance(hosts, list) and all(isinstance(host, str) for host in hosts)):
        raise UserError(f"{path}: hosts is {json.dumps(hosts)}. It must be a list of host names.")
    if current is None and len(hosts) <= 1:
        current = hosts[0] if hosts else "algo-1"
    names = tuple(sorted(set(hosts or [current])))
    if not isinstance(current, str) or current not in names:
        raise UserError(
            f"{path}: current_host is {json.dumps(current)}. It must be one of the hosts: {', '.join(names)}."
        )
    return Hosts(current, names, interface if isinstance(interface, str) else None)


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


def free_bytes(path: Path) -> int:
    """Return how many bytes can still be written below `path`, which need not exist yet."""
    while not path.exists() and path != path.parent:
        path = path.parent
    volume = os.statvfs(path)
    return volume.f_bavail * volume.f_frsize


def can_write(folder: Path) -> bool:
    """Return whether files can be made in `folder`: it is there, a folder, and not closed to this process."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except (OSError, ValueError):  # a path with a NUL is no value for Python
        return False


def _json_type(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    return "a text" if isinstance(value, str) else json.dumps(value)


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
