"""What SageMaker puts around a job: environment variables, folders, configuration files, hosts.

The only module that looks at environment variables. Functions take them as a mapping, and the root of the
file system as a path, so that plain files can stand for any machine.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smxgb.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

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


STATE = "SMXGB_STATE"
"""The environment variable with the folder in which the work keeps its state for a restart."""


def state_environ(folder: Path | None) -> dict[str, str]:
    """Return the environment variable that tells the work where to keep its state for a restart."""
    return {STATE: str(folder)} if folder else {}


PLANS_GIVEN_UP = "SMXGB_PLANS_GIVEN_UP"
"""The environment variable that counts with how many of the memory plans the work has run out of memory."""


def plans_given_up(environ: Mapping[str, str]) -> int:
    """Return with how many of the memory plans earlier attempts of the work have run out of memory."""
    return int(environ.get(PLANS_GIVEN_UP, "0"))


def state_of(environ: Mapping[str, str]) -> Path | None:
    """Return the folder in which the work keeps its state for a restart, None if there is none."""
    return Path(environ[STATE]) if environ.get(STATE) else None


SCRIPT_GROUP = "SMXGB_GROUP"
"""The environment variable that tells the scripts of several hosts where they meet."""


@dataclass(frozen=True)
class Meeting:
    """Where the scripts of several hosts meet: an address of the first host, a port; the addresses of all."""

    address: str
    port: int
    addresses: tuple[str, ...]

    def as_environ(self) -> dict[str, str]:
        """Return the environment variable that tells a script of it."""
        return {SCRIPT_GROUP: json.dumps([self.address, self.port, *self.addresses])}

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Meeting | None:
        """Return what the environment variable says, None without it."""
        if not environ.get(SCRIPT_GROUP):
            return None
        address, port, *addresses = json.loads(environ[SCRIPT_GROUP])
        return cls(address, port, tuple(addresses))


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
    if len(names) > 1:
        _check_names(path, names)
    return Hosts(current, names, interface if isinstance(interface, str) else None)


def _check_names(path: Path, names: tuple[str, ...]) -> None:
    """Raise UserError if a host's name can't be looked up."""
    for name in names:
        try:
            can_be = name.isprintable() and " " not in name and name.encode("idna")
        except UnicodeError:
            can_be = False
        if not can_be:
            raise UserError(
                f"{path}: {json.dumps(name)} is no name of a host: a name has parts of 1 to 63 "
                "letters, digits and hyphens each, with dots between them."
            )


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
