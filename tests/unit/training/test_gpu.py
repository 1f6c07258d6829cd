"""What can be said of the GPU's side without one: NumPy stands in for CuPy, whose calls it shares."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
import xgboost as xgb

from smxgb.environment import Hosts, nccl_environ
from smxgb.errors import JobError, PlatformError, UserError, as_job_error
from smxgb.rows.batch import Dense
from smxgb.rows.schema import Schema
from smxgb.rows.store import Stored
from smxgb.rows.summary import Shape, Summary
from smxgb.settings import parse
from smxgb.training import gpu
from smxgb.training.matrix import MatrixOptions, build_matrix
from smxgb.training.memory_plan import Memory, make_plans

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smxgb.settings import Parsed
    from smxgb.training.memory_plan import Plan

COLUMNS = 3


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("cupy")
    module.asarray = np.asarray  # type: ignore[attr-defined]
    module.ascontiguousarray = np.ascontiguousarray  # type: ignore[attr-defined]
    pool = type("Pool", (), {"free_all_blocks": lambda _: None})()
    module.get_default_memory_pool = lambda: pool  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", module)


def features(rows: int, seed: int = 1) -> pa.Table:
    values = np.random.default_rng(seed).normal(size=(COLUMNS, rows)).astype(np.float32)
    columns = [pa.array(column, mask=np.arange(rows) % 7 == index) for index, column in enumerate(values)]
    return pa.table(columns, [f"f{index}" for index in range(COLUMNS)])


@pytest.mark.usefixtures("cupy")
def test_columns_become_rows_and_null_becomes_nan() -> None:
    table = features(20)
    rows = gpu.to_gpu(table)
    assert rows.shape == (20, COLUMNS)
    assert rows.dtype == np.float32
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, table.to_pandas().to_numpy())
    assert np.isnan(rows).sum() == sum(column.null_count for column in table.columns) > 0


@pytest.mark.usefixtures("cupy")
def test_no_rows_are_rows_of_the_same_width() -> None:
    assert gpu.to_gpu(features(0)).shape == (0, COLUMNS)


@pytest.mark.usefixtures("cupy")
def test_a_matrix_made_for_the_gpu_trains_the_same_model(tmp_path: Path) -> None:
    batches = [Dense(features(500, seed), {"label": np.arange(500, dtype=np.float32) % 5}) for seed in (1, 2)]
    stored = Stored(Summary(1000), lambda: iter(batches))
    models = []
    for on_gpu in (True, False):
        matrix = build_matrix(
            stored,
            Schema.unnamed(COLUMNS),
            MatrixOptions("quantile", 1, on_gpu=on_gpu),
            tmp_path / "cache",
        )
        assert matrix.feature_names == ["f0", "f1", "f2"]
        models.append(xgb.train({"max_depth": 3}, matrix, 3).save_raw("json"))
    assert models[0] == models[1]


def test_categories_stay_in_their_own_form() -> None:
    table = pa.table({"f0": pa.array(["a", "b"]).dictionary_encode()})
    assert not gpu.holds(table)
    assert gpu.holds(features(3))


def plan_of(parameters: Parsed, gpu_available: int | None = None, columns: int = 100) -> Plan:
    shapes = {"train": Shape(10_000_000, columns)}
    return make_plans(parameters, shapes, Memory(1 << 40, gpu_available), classes=None, reading=0)[0]


def needed_on_gpu(columns: int = 100, **settings: object) -> int:
    parameters = parse({"num_round": "2", **{name: str(value) for name, value in settings.items()}})
    plan = plan_of(parameters, gpu_available=0, columns=columns)
    assert plan.needed.gpu is not None
    return plan.needed.gpu


def test_the_gpu_needs_fewer_bytes_for_fewer_bins_and_more_for_more_columns() -> None:
    assert (
        needed_on_gpu(max_bin=63)
        < needed_on_gpu()
        < needed_on_gpu(max_bin=1024)
        < needed_on_gpu(200, max_bin=1024)
    )


def test_data_near_the_gpus_memory_are_refused_with_advice() -> None:
    parameters = parse({"num_round": "2"})
    fits = plan_of(parameters, gpu_available=3 << 30)
    fits.check()
    assert "on the GPU" in fits.describe()
    with pytest.raises(JobError) as caught:
        plan_of(parameters, gpu_available=2 << 30).check()
    for words in ("on its GPU", "2,048 MiB are free", "more GPUs", "max_bin", "device=cpu"):
        assert words in str(caught.value)


def test_with_rows_on_the_gpu_the_host_needs_little() -> None:
    parameters = parse({"num_round": "2"})
    on_gpu = plan_of(parameters, gpu_available=1 << 40)
    assert on_gpu.needed.host < plan_of(parameters).needed.host / 5


class OutOfMemoryError(MemoryError):
    __module__ = "cupy.cuda.memory"


class CUDARuntimeError(RuntimeError):
    __module__ = "cupy_backends.cuda.api.runtime"


@pytest.mark.parametrize(
    "error",
    [
        OutOfMemoryError("Out of memory allocating 1,024 bytes"),
        CUDARuntimeError("cudaErrorMemoryAllocation: out of memory"),
        xgb.core.XGBoostError("device_helpers.cuh:414: Memory allocation error on worker 0: bad allocation"),
        xgb.core.XGBoostError("cudaErrorMemoryAllocation: out of memory"),
    ],
)
def test_a_gpu_out_of_memory_gets_advice(error: Exception, tmp_path: Path) -> None:
    failure = gpu.explained(error, tmp_path / "nccl.log")
    assert isinstance(failure, PlatformError)
    for words in ("the GPU is out of memory", "more GPUs", "max_bin", "max_depth", "device=cpu"):
        assert words in str(failure)


@pytest.mark.parametrize(
    "error", [MemoryError("malloc of size 1024 failed"), RuntimeError("out of memory"), ValueError("nccl")]
)
def test_a_host_out_of_memory_is_no_gpu_out_of_memory(error: Exception, tmp_path: Path) -> None:
    (tmp_path / "nccl.log").write_text("host:1 [0] NCCL WARN Could not open /dev/nvidia-uvm\n")
    with pytest.raises(type(error)) as caught, gpu.explaining(tmp_path / "nccl.log"):
        raise error
    assert caught.value is error


def test_another_failure_of_cuda_is_quoted(tmp_path: Path) -> None:
    failure = gpu.explained(
        CUDARuntimeError("cudaErrorECCUncorrectable: uncorrectable ECC error"), tmp_path / "n"
    )
    assert str(failure).startswith(
        "PlatformError: CUDA says cudaErrorECCUncorrectable: uncorrectable ECC error: the"
    )


def gpu_with(monkeypatch: pytest.MonkeyPatch, answer: Callable[[int], object]) -> None:
    module = ModuleType("cupy")
    runtime = SimpleNamespace(getDeviceProperties=answer)
    module.cuda = SimpleNamespace(runtime=runtime)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", module)


@pytest.mark.parametrize(
    ("major", "minor", "fits"), [(7, 0, False), (6, 1, False), (7, 5, True), (12, 1, True)]
)
def test_a_gpu_that_xgboost_has_no_code_for_is_refused(
    monkeypatch: pytest.MonkeyPatch, major: int, minor: int, *, fits: bool
) -> None:
    gpu_with(monkeypatch, lambda _: {"name": b"Tesla V100-SXM2-16GB", "major": major, "minor": minor})
    if fits:
        gpu.check_gpu()
        return
    with pytest.raises(UserError) as caught:
        gpu.check_gpu()
    assert f"(Tesla V100-SXM2-16GB) has compute capability {major}.{minor}, and" in str(caught.value)
    assert "device=cpu" in str(caught.value)


def test_a_driver_that_is_missing_or_too_old_is_a_failure_of_the_platform(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(_: int) -> object:
        raise CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    gpu_with(monkeypatch, answer)
    with pytest.raises(PlatformError) as caught:
        gpu.check_gpu()
    assert "CUDA can't use the GPU: cudaErrorInsufficientDriver: CUDA driver version" in str(caught.value)


def test_gpus_that_do_not_meet_end_with_what_nccl_says(tmp_path: Path) -> None:
    log = tmp_path / "nccl.log"
    assert "NCCL says" not in str(gpu.apart(log))
    log.write_text("host:1 [0] NCCL WARN socketStartConnect: Connect to 10.0.0.2 failed\n")
    failure = gpu.apart(log)
    assert failure.origin == "elsewhere"
    assert "did not meet within start_timeout" in str(failure)
    assert str(failure).endswith("NCCL says: socketStartConnect: Connect to 10.0.0.2 failed")


def test_a_warning_of_nccl_explains_no_error_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "nccl.log").write_text("host:1 [0] NCCL WARN Could not open /dev/nvidia-uvm\n")
    error = xgb.core.XGBoostError("[1] /workspace/src/tree/gpu_hist.cu:9: Check failed.\nStack trace: nccl")
    assert gpu.explained(error, tmp_path / "nccl.log") is None


def test_nccls_own_warning_is_quoted(tmp_path: Path) -> None:
    log = tmp_path / "nccl.log"
    error = xgb.core.XGBoostError("ncclSystemError: unhandled system error")
    assert gpu.explained(error, log) is None
    log.write_text(
        "host:1 [0] NCCL INFO ready\nhost:1 [0] init.cc:42 NCCL WARN Bootstrap : no socket interface found\n"
    )
    failure = gpu.explained(error, log)
    assert isinstance(failure, PlatformError)
    assert failure.origin == "elsewhere"  # it may be the mere consequence of another worker's end
    assert str(failure).endswith("NCCL says: Bootstrap : no socket interface found")


def test_an_error_of_xgboost_that_says_nothing_of_a_gpu_is_raised_as_it_is(tmp_path: Path) -> None:
    error = xgb.core.XGBoostError("Check failed: iter == 0")
    with pytest.raises(xgb.core.XGBoostError) as caught, gpu.explaining(tmp_path / "nccl.log"):
        raise error
    assert caught.value is error
    assert caught.value.__cause__ is None
    assert str(as_job_error(error)) == "AlgorithmError: XGBoostError: Check failed: iter == 0"


def test_nccl_is_told_an_interface_only_if_there_is_one_and_hosts_need_it(tmp_path: Path) -> None:
    (tmp_path / "sys/class/net/eth0").mkdir(parents=True)
    two = ("algo-1", "algo-2")
    log = tmp_path / "nccl.log"
    told = nccl_environ(Hosts("algo-1", two, "eth0"), log, tmp_path)
    assert told == {"NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": str(log), "NCCL_SOCKET_IFNAME": "eth0"}
    for hosts in (Hosts("algo-1", two, "ethwe"), Hosts("algo-1", two), Hosts("algo-1", ("algo-1",), "eth0")):
        assert "NCCL_SOCKET_IFNAME" not in nccl_environ(hosts, log, tmp_path)
