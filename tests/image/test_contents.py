"""What is in the images, and what is not."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from tests.image.containers import IMAGES, docker, image, run_python
from tests.opt_ml import csv, libsvm, parquet, recordio

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from tests.image.containers import Train
    from tests.opt_ml import Source

IMPORTS = """
import boto3, dask, dask.array, dask.dataframe, distributed, numpy.testing, pandas, pandas.testing, psutil
import pyarrow.compute, pyarrow.csv, pyarrow.dataset, pyarrow.feather, pyarrow.fs, pyarrow.json, pyarrow.orc
import pyarrow.parquet, sagemaker_training.entry_point, scipy.optimize, scipy.sparse, scipy.stats, xgboost
import xgboost.dask
print("imported")
"""

SHARED_OBJECTS = """
import ctypes, json, os, sysconfig
from pathlib import Path
failed = {}
for path in sorted(Path(sysconfig.get_path("platlib")).rglob("*.so*")):
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        failed[path.name] = str(error)
print(json.dumps(failed))
"""


def test_the_cpu_image_has_at_most_500_megabytes() -> None:
    size = int(docker("image", "inspect", "--format", "{{.Size}}", image("cpu")).stdout)
    assert size <= 500_000_000


@pytest.mark.parametrize("variant", ["cpu", "gpu"])
def test_the_image_trains_by_default_and_asks_for_every_gpu(variant: str) -> None:
    found = docker("image", "inspect", "--format", "{{json .}}", f"{IMAGES}:{variant}")
    described = json.loads(found.stdout)
    assert described["Config"]["Cmd"] == ["train"]
    assert not described["Config"]["Entrypoint"]
    assert described["Architecture"] == "amd64"
    assert {"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"} <= set(
        described["Config"]["Env"]
    )
    assert described["Config"]["Labels"]["smxgb.variant"] == variant


def test_nothing_of_how_packages_were_installed_is_in_the_image() -> None:
    places = "/etc/pip.conf /root/.config /root/.pip /etc/apt/auth.conf /etc/ssl/certs/ci-ca-bundle.crt"
    found = docker(
        "run", "--rm", image("cpu"), "sh", "-c", f"ls -d {places} 2>/dev/null; env | grep -i ^pip_"
    )
    assert found.stdout == ""


@pytest.mark.parametrize("command", ["train", "serve", "smxgb", "python", "python3", "pip"])
def test_a_command_is_on_the_path(command: str) -> None:
    assert docker("run", "--rm", image("cpu"), "sh", "-c", f"command -v {command}").returncode == 0


def test_what_was_left_out_is_not_missed() -> None:
    assert run_python(IMPORTS, options=("--network", "none")).split()[-1] == "imported"


def test_every_shared_object_finds_its_libraries() -> None:
    assert json.loads(run_python(SHARED_OBJECTS)) == {}


def test_every_codec_of_compressed_files_is_there() -> None:
    codecs = ["brotli", "bz2", "gzip", "lz4", "snappy", "zstd"]
    assert (
        run_python(f"import pyarrow; print(all(map(pyarrow.Codec.is_available, {codecs})))").strip() == "True"
    )


def test_no_compiler_is_left() -> None:
    assert docker("run", "--rm", image("cpu"), "sh", "-c", "command -v gcc || command -v cc").returncode != 0


@pytest.mark.parametrize(
    ("write", "settings"),
    [
        (csv, {}),
        (parquet, {}),
        (libsvm, {}),
        (recordio, {}),
        (parquet, {"use_dask_gpu_training": "true", "device": "cpu", "workers_per_host": 2}),
    ],
)
def test_whatever_a_job_imports_is_compiled(
    train: Train,
    table: pd.DataFrame,
    write: Callable[[pd.DataFrame], Source],
    settings: dict[str, object],
) -> None:
    outcome = train(
        "train",
        options=("--env", "PYTHONVERBOSE=1"),
        hyperparameters={"num_round": 2, "objective": "reg:squarederror", **settings},
        channels={"train": write(table), "validation": write(table)},
    )
    assert outcome.code == 0, outcome.log
    assert "import 'smxgb.training.worker'" in outcome.log
    assert ("import 'distributed.worker'" in outcome.log) == bool(settings)
    assert re.findall(r"# code object from '(/opt/smxgb/[^']*[.]py)'", outcome.log) == []
