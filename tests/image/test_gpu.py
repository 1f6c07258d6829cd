"""The gpu image without a GPU: its libraries load, and a job that asks for one is refused in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.image.containers import learned, run_python

if TYPE_CHECKING:
    import pandas as pd
    from tests.image.containers import Train

SETTINGS = {"objective": "reg:squarederror", "num_round": 20, "max_depth": 4}


def test_xgboost_is_built_for_cuda() -> None:
    code = "import xgboost; info = xgboost.build_info(); print(info['USE_CUDA'], info['USE_NCCL'])"
    assert run_python(code, variant="gpu").split() == ["True", "True"]


@pytest.mark.parametrize("module", ["cupy", "dask_cuda", "distributed", "smxgb.worker"])
def test_a_module_imports(module: str) -> None:
    run_python(f"import {module}", variant="gpu", options=("--network", "none"))


@pytest.mark.parametrize("library", ["nvrtc", "cudart", "nccl"])
def test_a_cuda_library_loads(library: str) -> None:
    code = f"""
import ctypes, sysconfig
from pathlib import Path
[path] = Path(sysconfig.get_path("platlib"), "nvidia").rglob("lib{library}.so.*")
ctypes.CDLL(str(path))
"""
    run_python(code, variant="gpu")


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
