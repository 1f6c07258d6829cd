"""The gpu image without a GPU: its libraries load, and a job that asks for one is refused in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.image.containers import docker, image, learned, run_python

if TYPE_CHECKING:
    import pandas as pd
    from tests.image.containers import Train

SETTINGS = {"objective": "reg:squarederror", "num_round": 20, "max_depth": 4}


def test_xgboost_is_built_for_cuda() -> None:
    code = "import xgboost; info = xgboost.build_info(); print(info['USE_CUDA'], info['USE_NCCL'])"
    assert run_python(code, variant="gpu").split() == ["True", "True"]


@pytest.mark.parametrize("module", ["cupy", "dask_cuda", "distributed", "smxgb.training.worker"])
def test_a_module_imports(module: str) -> None:
    code = f"import {module}; print({module}.__name__)"
    assert run_python(code, variant="gpu", options=("--network", "none")).split()[-1] == module


@pytest.mark.parametrize("library", ["nvrtc", "cudart", "nccl"])
def test_a_cuda_library_loads(library: str) -> None:
    code = f"""
import ctypes, sysconfig
from pathlib import Path
[path] = Path(sysconfig.get_path("platlib"), "nvidia").rglob("lib{library}.so.*")
print(ctypes.CDLL(str(path))._name)
"""
    assert f"lib{library}.so" in run_python(code, variant="gpu")


def test_cupy_reaches_nvrtc() -> None:
    found = run_python("from cupy.cuda import nvrtc; print(*nvrtc.getVersion())", variant="gpu")
    assert found.split()[0] == "12"


@pytest.mark.parametrize("settings", [{"device": "cuda"}, {"tree_method": "gpu_hist"}])
def test_cuda_without_a_gpu_is_the_users_mistake(
    train: Train, table: pd.DataFrame, settings: dict[str, str]
) -> None:
    outcome = train(
        "train", variant="gpu", hyperparameters={**SETTINGS, **settings}, channels={"train": table}
    )
    assert outcome.code == 2, outcome.log
    assert outcome.failure is not None
    assert outcome.failure.startswith("UserError: ")
    assert "GPU" in outcome.failure
    assert not outcome.models


def test_the_gpu_image_trains_on_the_processor_when_there_is_no_gpu(
    train: Train, table: pd.DataFrame
) -> None:
    outcome = train("train", variant="gpu", hyperparameters=SETTINGS, channels={"train": table})
    assert outcome.code == 0, outcome.log
    assert learned(outcome, table)


KERNEL = """
import sysconfig
from pathlib import Path
from cupy.cuda import compiler
site = Path(sysconfig.get_path("platlib"))
own = site / "cupy/_core/include"
parts = [own / "cupy/_cccl" / name for name in ("libcudacxx", "thrust", "cub")]
source = '''
#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/float16.cuh>
extern "C" __global__ void one(CArray<float, 1, true, true> a) { a[0] = 1; }
'''
folders = [f"-I{folder}" for folder in (own, *parts, *site.glob("nvidia/*/include"))]
options = ["-std=c++17", "-default-device", "--gpu-architecture=compute_75", *folders]
code, _ = compiler._NVRTCProgram(source, "one.cu", (), (), (), "ptx").compile(options, None)
print(code.decode() if isinstance(code, bytes) else code)
"""


def test_the_kernels_of_cupy_compile_with_what_the_image_has() -> None:
    # NVRTC needs no GPU; at the first use on one, CuPy compiles each of its kernels so.
    assert ".entry one(" in run_python(KERNEL, variant="gpu", options=("--network", "none"))


def test_no_compiler_of_cuda_is_left() -> None:
    found = docker("run", "--rm", image("gpu"), "find", "/", "-xdev", "-name", "nvcc", "-o", "-name", "ptxas")
    assert found.stdout == ""


NEAR = """
import os
from smxgb.training.gpu import stay_near
before = os.sched_getaffinity(0)
for gpu in ("0", "7", "GPU-9fb42d6f-7d6b-368f-f79c-3c3e784c93f6"):
    stay_near(gpu)
print(before == os.sched_getaffinity(0))
"""


def test_a_worker_keeps_its_processors_where_no_driver_knows_better() -> None:
    assert run_python(NEAR, variant="gpu", options=("--cpuset-cpus", "0")) == "True\n"
