from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from smxgb.environment import (
    Hosts,
    Machine,
    Paths,
    child_environ,
    free_bytes,
    oom_kills,
    read_hosts,
    read_json,
    read_machine,
)
from smxgb.errors import UserError

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


def config(base: Path, name: str, text: str) -> Paths:
    paths = Paths(base)
    paths.config.mkdir(parents=True)
    (paths.config / name).write_text(text)
    return paths


def hosts(base: Path, value: Any) -> Hosts:
    return read_hosts(config(base, "resourceconfig.json", json.dumps(value)))


def test_the_base_folder_is_opt_ml_unless_the_environment_names_another() -> None:
    assert Paths.from_environ({}).failure == Path("/opt/ml/output/failure")
    assert Paths.from_environ({"SAGEMAKER_BASE_DIR": "/b"}).config == Path("/b/input/config")


def test_a_missing_or_empty_configuration_file_is_an_empty_object(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text(" \n")
    assert read_json(tmp_path / "missing.json") == {}
    assert read_json(tmp_path / "empty.json") == {}


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": "1"}')
    assert read_json(tmp_path / "a.json") == {"a": "1"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{\n  "a": 1,\n  b: 2}', "a.json, line 3, column 3: this is not JSON"),
        (b'["a"]', "a.json, line 1, column 1: the file holds a list. It must hold one object"),
        (b'"a"', "holds a text."),
        (b"12", "holds 12."),
        (b"null", "holds null."),
        (b'{"a": "\xff"}', "a.json: byte 8 is not UTF-8."),
        (b'{"a": 1, "b": {"c": 2, "c": 2}}', "a.json: 'c' stands there more than once: keep one of them."),
        (b'{"a": ' + b"1" * 5000 + b"}", "a.json: this is not JSON that can be read"),
    ],
)
def test_a_configuration_file_that_can_not_be_read_is_named_with_the_place(
    tmp_path: Path, text: bytes, words: str
) -> None:
    (tmp_path / "a.json").write_bytes(text)
    with pytest.raises(UserError) as raised:
        read_json(tmp_path / "a.json")
    assert words in str(raised.value)


def test_a_folder_in_the_place_of_a_configuration_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(UserError, match="is a folder, not a file"):
        read_json(tmp_path / "a.json")


def test_without_a_resource_configuration_there_is_one_host(tmp_path: Path) -> None:
    assert read_hosts(Paths(tmp_path)) == Hosts("algo-1", ("algo-1",))


def test_the_hosts_are_sorted(tmp_path: Path) -> None:
    value = {"current_host": "algo-2", "hosts": ["algo-2", "algo-1"], "network_interface_name": "eth0"}
    assert hosts(tmp_path, value) == Hosts("algo-2", ("algo-1", "algo-2"), "eth0")


@pytest.mark.parametrize("value", [{}, {"hosts": []}, {"hosts": ["algo-1"]}, {"current_host": "algo-1"}])
def test_with_no_key_or_one_key_there_is_one_host(tmp_path: Path, value: Any) -> None:
    assert hosts(tmp_path, value) == Hosts("algo-1", ("algo-1",))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"hosts": "algo-1"}, 'hosts is "algo-1". It must be a list of host names.'),
        ({"hosts": [1]}, "hosts is [1]."),
        ({"hosts": ["a", "b"]}, "current_host is null. It must be one of the hosts: a, b."),
        ({"hosts": ["a", "b"], "current_host": "c"}, 'current_host is "c".'),
    ],
)
def test_hosts_that_make_no_sense_are_refused(tmp_path: Path, value: Any, words: str) -> None:
    with pytest.raises(UserError) as raised:
        hosts(tmp_path, value)
    assert words in str(raised.value)


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


def test_the_free_bytes_of_a_folder_that_does_not_exist_yet_are_those_of_its_volume(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "a" / "b") == pytest.approx(free_bytes(tmp_path), rel=0.1)
    assert free_bytes(tmp_path) > 0


def test_openmp_threads_of_the_work_do_not_spin_unless_the_user_wants_it() -> None:
    environ = child_environ({"A": "1"})
    assert environ["A"] == "1"
    assert environ["OMP_WAIT_POLICY"] == "passive"
    assert child_environ({"OMP_WAIT_POLICY": "active"})["OMP_WAIT_POLICY"] == "active"
