from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from smxgb.machine import Machine, oom_kills, read_machine

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1024**3
MEMINFO = f"MemTotal: {16 * 1024**2} kB\nMemFree: 1 kB\nMemAvailable: {12 * 1024**2} kB"
NO_LIMIT_V1 = str(2**63 - 4096)


def machine(root: Path, files: dict[str, str], environ: dict[str, str] | None = None) -> Machine:
    return read_machine(environ or {}, tree(root, files))


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in ({"proc/meminfo": MEMINFO} | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def test_without_control_groups_the_machine_is_the_limit(tmp_path: Path) -> None:
    assert machine(tmp_path, {}) == Machine(len(os.sched_getaffinity(0)), 16 * GIB, "machine", 12 * GIB, ())


@pytest.mark.parametrize(
    "files",
    [
        {
            "proc/self/cgroup": "0::/",
            "sys/fs/cgroup/memory.max": str(2 * GIB),
            "sys/fs/cgroup/memory.current": str(GIB),
            "sys/fs/cgroup/memory.stat": f"anon {GIB // 2}\ninactive_file {GIB // 4}\nactive_file {GIB // 4}",
        },
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": str(2 * GIB),
            "sys/fs/cgroup/memory/memory.usage_in_bytes": str(GIB),
            "sys/fs/cgroup/memory/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB // 2}",
        },
        {
            "proc/self/cgroup": "0::/system.slice/job.scope",
            "sys/fs/cgroup/system.slice/memory.max": str(2 * GIB),
            "sys/fs/cgroup/system.slice/memory.current": str(GIB // 2),
            "sys/fs/cgroup/system.slice/job.scope/memory.max": "max",
        },
        {
            "proc/self/cgroup": "4:memory:/a/b",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT_V1,
            "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": str(2 * GIB),
            "sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": str(GIB // 2),
        },
        {
            "proc/self/cgroup": "0::/../other",
            "sys/fs/cgroup/memory.max": str(2 * GIB),
            "sys/fs/cgroup/memory.current": str(GIB // 2),
        },
    ],
    ids=["v2", "v1 in a container", "v2 nested", "v1 nested", "v2 outside of the namespace"],
)
def test_the_smallest_limit_of_the_control_groups_counts_and_page_cache_is_free(
    tmp_path: Path, files: dict[str, str]
) -> None:
    found = machine(tmp_path, files)
    assert (found.memory_limit, found.memory_limit_source) == (2 * GIB, "cgroup")
    assert found.memory_available == 1.5 * GIB


@pytest.mark.parametrize(
    "files",
    [
        {"sys/fs/cgroup/memory.max": "max"},
        {"sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT_V1},
        {"sys/fs/cgroup/memory.max": "nonsense", "proc/self/cgroup": "nonsense"},
    ],
)
def test_a_control_group_without_a_limit_changes_nothing(tmp_path: Path, files: dict[str, str]) -> None:
    found = machine(tmp_path, files)
    assert (found.memory_limit, found.memory_limit_source) == (16 * GIB, "machine")
    assert found.memory_available == 12 * GIB


def test_a_limit_is_no_promise_that_the_machine_has_the_memory_free(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/memory.max": str(15 * GIB), "sys/fs/cgroup/memory.current": "0"}
    assert machine(tmp_path, files).memory_available == 12 * GIB


@pytest.mark.parametrize(
    ("files", "threads"),
    [
        ({"sys/fs/cgroup/cpu.max": "100000 100000"}, 1),
        ({"sys/fs/cgroup/cpu.max": "50000 100000"}, 1),
        ({"sys/fs/cgroup/cpu.max": "150000 100000"}, 2),
        ({"sys/fs/cgroup/cpu.max": "210000 100000"}, 3),
        ({"sys/fs/cgroup/cpu.max": "max 100000"}, 8),
        ({"sys/fs/cgroup/cpu.max": "3200000 100000"}, 8),
        (
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"},
            2,
        ),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 8),
        (
            {
                "proc/self/cgroup": "0::/a/b",
                "sys/fs/cgroup/a/b/cpu.max": "400000 100000",
                "sys/fs/cgroup/a/cpu.max": "300000 100000",
            },
            3,
        ),
    ],
)
def test_threads_are_what_affinity_and_quota_both_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], threads: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert machine(tmp_path, files).threads == threads


@pytest.mark.parametrize(
    ("environ", "gpus"),
    [
        ({}, ("0", "1", "2")),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, ("0", "1", "2")),
        ({"NVIDIA_VISIBLE_DEVICES": "void"}, ()),
        ({"NVIDIA_VISIBLE_DEVICES": "none"}, ()),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, ()),
        ({"CUDA_VISIBLE_DEVICES": "2, 0"}, ("2", "0")),
        ({"CUDA_VISIBLE_DEVICES": "0,7,1"}, ("0",)),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8932f937"}, ("GPU-8932f937",)),
    ],
)
def test_gpus_are_the_device_files_that_the_environment_leaves_visible(
    tmp_path: Path, environ: dict[str, str], gpus: tuple[str, ...]
) -> None:
    files = {f"dev/nvidia{name}": "" for name in ("0", "1", "10", "ctl", "-uvm", "-modeset")}
    assert machine(tmp_path, files, environ).gpus == gpus


def test_without_device_files_no_setting_makes_a_gpu(tmp_path: Path) -> None:
    assert machine(tmp_path, {}, {"CUDA_VISIBLE_DEVICES": "0,GPU-8932f937"}).gpus == ()


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({}, 0),
        ({"sys/fs/cgroup/memory.events": "low 0\noom 5\noom_kill 3"}, 3),
        ({"sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2"}, 2),
        ({"sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0"}, 0),
        (
            {
                "proc/self/cgroup": "0::/a",
                "sys/fs/cgroup/a/memory.events": "oom_kill 1",
                "sys/fs/cgroup/memory.events": "oom_kill 9",
            },
            1,
        ),
        (
            {
                "proc/self/cgroup": "4:memory:/docker/a",
                "sys/fs/cgroup/memory/memory.oom_control": "oom_kill 4",
            },
            4,
        ),
    ],
)
def test_the_kernel_counts_the_processes_that_it_killed_for_memory(
    tmp_path: Path, files: dict[str, str], count: int
) -> None:
    assert oom_kills(tree(tmp_path, files)) == count


def test_this_machine_can_be_read() -> None:
    found = read_machine({})
    assert found.threads >= 1
    assert 0 < found.memory_available <= found.memory_limit
    assert oom_kills() >= 0
