"""What a machine with a GPU shows of this container: one table, and the same as JSON; under eight minutes.

Whole jobs: the GPU against the processors on the same rows, and the Dask mode, with one worker (forced, for
one GPU needs no Dask) and with all GPUs. Parts of a job: the matrix from batches in the host's memory and
from batches on the GPU, loading to the GPU, GPU memory a row against the plan, external memory. Without a
GPU, or with `--device cpu`, the same steps run on the processors, as far as they can.

A GPU needs an XGBoost with CUDA, and CuPy. The gpu image has both:

docker run --rm --gpus all --volume "$PWD/benchmarks:/benchmarks:ro" smxgb:gpu python /benchmarks/gpu_check.py

It takes any XGBoost 3.4 that is installed, and prints which: `pip install xgboost cupy-cuda13x` will do where
the image's CUDA 12 build can't be had.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tables import WRITERS
from two_hosts import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable

    from smxgb.job.job import Job
    from smxgb.rows.loading import Loaded
    from smxgb.supervision.link import Link

HERE = Path(__file__)
STEP_SECONDS = 110
"""How long one step may take: five of them are the longest."""


@dataclass(frozen=True)
class Step:
    """One step: its name in the table and how it is run; if it `needs_gpu`, it is skipped without one."""

    title: str
    run: Callable[[Path, str], dict[str, object]]
    needs_gpu: bool = False


def write_job(base: Path, rows: int, columns: int, rounds: int) -> None:
    """Make the folder of a job: one Parquet file, whose row groups the workers share out."""
    (base / "input/data/train").mkdir(parents=True)
    (base / "input/config").mkdir()
    WRITERS["parquet"](base / "input/data/train/part-0.parquet", rows, columns)
    settings = {"objective": "binary:logistic", "num_round": rounds, "max_depth": 6, "eval_metric": "logloss"}
    write_settings(base, settings)


def write_settings(base: Path, settings: dict[str, object]) -> None:
    """Write a job's hyperparameters, as SageMaker does."""
    texts = {name: str(value) for name, value in settings.items()}
    (base / "input/config/hyperparameters.json").write_text(json.dumps(texts))


def run_job(base: Path, **settings: object) -> dict[str, object]:
    """Run a whole job with these settings beside the usual ones; return its seconds and its last loss."""
    usual = json.loads((base / "input/config/hyperparameters.json").read_text())
    with TemporaryDirectory(dir=base.parent) as folder:
        job = Path(folder)
        (job / "input").mkdir()
        (job / "input/data").symlink_to(base / "input/data", target_is_directory=True)
        (job / "input/config").mkdir()
        forced = settings.pop("forced", False)
        # Others may run the same on this machine.
        write_settings(job, usual | free_ports() | settings)
        command = [str(HERE), "--supervise"] if forced else ["-m", "smxgb", "train"]
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *command],
            env=os.environ | {"SAGEMAKER_BASE_DIR": str(job)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        total = time.perf_counter() - begin
        if done.returncode:
            raise RuntimeError("\n".join(done.stdout.splitlines()[-5:]))
        report = json.loads((job / "output/data/metrics.json").read_text())
    seconds = {name: phase["seconds"] for name, phase in report["phases"].items()}
    return {"seconds": round(total, 2), **seconds, "logloss": report["history"]["train"]["logloss"][-1]}


def supervise_forced() -> int:
    """Run a job in the Dask mode though one GPU needs none."""
    from smxgb.environment import process_environ  # noqa: PLC0415
    from smxgb.supervision.supervisor import supervise  # noqa: PLC0415

    return supervise(process_environ(), (sys.executable, str(HERE), "--work"))


def work_forced(link: Link) -> None:
    """Be the work of such a job."""
    from smxgb.environment import process_environ  # noqa: PLC0415
    from smxgb.job.job import load_job  # noqa: PLC0415
    from smxgb.job.mode import Choice  # noqa: PLC0415
    from smxgb.trainers import dask  # noqa: PLC0415

    job = load_job(process_environ())
    dask.train(replace(job, team=replace(job.team, mode=Choice("dask", "forced"))), link)


def jobs_compared(base: Path, device: str) -> dict[str, object]:
    """Run the job on the device and on the processors; their losses should agree to a thousandth."""
    ours, processors = run_job(base, device=device), run_job(base, device="cpu")
    difference = abs(float(str(ours["logloss"])) - float(str(processors["logloss"])))
    return {
        "device": ours,
        "processors": processors,
        "train_ratio": round(float(str(processors["train"])) / max(1e-9, float(str(ours["train"]))), 2),
        "logloss_difference": difference,
        "agrees": difference < 1e-3,  # noqa: PLR2004 - the docstring says it
    }


def dask_with_one_worker(base: Path, device: str) -> dict[str, object]:
    """Run the Dask mode with one worker."""
    return run_job(base, forced=True, device=device, workers_per_host=1)


def dask_with_all(base: Path, device: str) -> dict[str, object]:
    """Run the Dask mode with a worker on each GPU; two without one."""
    workers = {"workers_per_host": 2} if device == "cpu" else {}
    return run_job(base, use_dask_gpu_training="true", device=device, **workers)


def opened(base: Path, scratch: Path) -> tuple[Job, Loaded]:
    """Return the job and its rows."""
    from smxgb.job.job import load_job  # noqa: PLC0415
    from smxgb.rows.loading import load  # noqa: PLC0415
    from smxgb.rows.worker_group import Solo  # noqa: PLC0415
    from smxgb.supervision.link import Link  # noqa: PLC0415

    job = load_job({**os.environ, "SAGEMAKER_BASE_DIR": str(base)})
    return job, load(job, job.threads, Solo("here"), scratch, Link())


def matrix_and_round(base: Path, device: str, *, on_gpu: bool) -> dict[str, object]:
    """Build the matrix one way and train two rounds: the first converts what is not on the GPU yet."""
    import xgboost as xgb  # noqa: PLC0415

    from smxgb.training.matrix import MatrixOptions, build_matrix  # noqa: PLC0415

    with TemporaryDirectory() as scratch:
        job, loaded = opened(base, Path(scratch))
        free = gpu_memory() if device == "cuda" else 0
        begin = time.perf_counter()
        matrix = build_matrix(
            loaded.channels["train"],
            loaded.schema,
            MatrixOptions("quantile", job.threads, on_gpu=on_gpu),
            Path(scratch) / "cache",
        )
        built = time.perf_counter()
        parameters = {"objective": "binary:logistic", "device": device, "nthread": job.threads}
        booster = xgb.Booster(parameters, [matrix])
        booster.update(matrix, 0)
        first = time.perf_counter()
        booster.update(matrix, 1)
        end = time.perf_counter()
        rows = matrix.num_row()
        measured: dict[str, object] = {
            "matrix": round(built - begin, 2),
            "first_round": round(first - built, 2),
            "second_round": round(end - first, 3),
        }
        if device == "cuda":
            taken = free - gpu_memory()
            measured |= {"gpu_bytes_a_row": round(taken / rows, 1), "planned": planned_bytes_a_row(loaded)}
        return measured


def planned_bytes_a_row(loaded: Loaded) -> float:
    """Return what the plan reckons with."""
    from smxgb.training.memory_plan import GPU_BASE, Memory, make_plans  # noqa: PLC0415

    shape = loaded.channels["train"].summary.shape(len(loaded.schema.names))
    from smxgb.settings import parse  # noqa: PLC0415

    parameters = parse({"num_round": "1"})
    [plan] = make_plans(parameters, {"train": shape}, Memory(1 << 50, 1 << 50), classes=None, reading=0)
    return math.nan if plan.needed.gpu is None else round((plan.needed.gpu - GPU_BASE) / shape.rows, 1)


def gpu_memory() -> int:
    """Return the free bytes of the GPU once all that CuPy keeps is given back."""
    from smxgb.training import gpu  # noqa: PLC0415

    gpu.forget_batches()
    return gpu.free_memory()


def loading(base: Path, device: str) -> dict[str, object]:
    """Read all rows once, onto the GPU if there is one; return the rate in GB of float32 a second."""
    from smxgb.training import gpu  # noqa: PLC0415

    with TemporaryDirectory() as scratch:
        _, loaded = opened(base, Path(scratch))
        begin, count = time.perf_counter(), 0
        for batch in loaded.channels["train"].batches():
            assert not hasattr(batch, "indices")  # noqa: S101 - the table is dense
            if device == "cuda":
                gpu.to_gpu(batch.features)
            count += batch.rows * len(loaded.schema.names) * 4
        seconds = time.perf_counter() - begin
    return {"gb_a_second": round(count / seconds / 1e9, 2), "gb": round(count / 1e9, 2)}


def external_memory(base: Path, device: str) -> dict[str, object]:
    """Train with the binned rows outside the device's memory; return the seconds and the loss."""
    import xgboost as xgb  # noqa: PLC0415

    from smxgb.training.matrix import Batches  # noqa: PLC0415

    with TemporaryDirectory() as scratch:
        job, loaded = opened(base, Path(scratch))
        on_gpu = device == "cuda"
        prefix = str(Path(scratch) / "external")
        batches = Batches(loaded.channels["train"], loaded.schema, cache_prefix=prefix, on_gpu=on_gpu)
        begin = time.perf_counter()
        matrix = xgb.ExtMemQuantileDMatrix(batches, nthread=job.threads)
        built = time.perf_counter()
        parameters = {
            "objective": "binary:logistic",
            "device": device,
            "nthread": job.threads,
            "max_depth": 6,
        }
        history: dict[str, dict[str, list[float]]] = {}
        xgb.train(parameters, matrix, 5, evals=[(matrix, "train")], evals_result=history, verbose_eval=False)
        end = time.perf_counter()
        return {
            "matrix": round(built - begin, 2),
            "five_rounds": round(end - built, 2),
            "logloss": history["train"]["logloss"][-1],
        }


STEPS: dict[str, Step] = {
    "jobs": Step("whole job, device against processors", jobs_compared),
    "dask-one": Step("Dask mode, one worker", dask_with_one_worker),
    "dask-all": Step("Dask mode, all GPUs", dask_with_all),
    "host-batches": Step("matrix from host batches", lambda b, d: matrix_and_round(b, d, on_gpu=False)),
    "gpu-batches": Step(
        "matrix from GPU batches", lambda b, d: matrix_and_round(b, d, on_gpu=True), needs_gpu=True
    ),
    "loading": Step("loading", loading),
    "external": Step("external memory", external_memory),
}


def installed() -> dict[str, object]:
    """Return the XGBoost that is installed, what it was built for, and the GPUs."""
    import xgboost as xgb  # noqa: PLC0415

    wheels = [name for name in ("xgboost-cu12", "xgboost-cpu", "xgboost") if _is_installed(name)]
    built = xgb.build_info()
    shown = (
        subprocess.run(
            ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        if shutil.which("nvidia-smi")
        else ""
    )
    return {
        "wheel": f"{wheels[0]} {metadata.version(wheels[0])}" if wheels else "unknown",
        "cuda": built.get("CUDA_VERSION") if built.get("USE_CUDA") else None,
        "gpus": shown.strip().splitlines(),
    }


def without_gpu(found: dict[str, object]) -> str | None:
    """Return what a GPU lacks here, by what is installed; None if it can be used."""
    if not found["gpus"]:
        return "nvidia-smi lists none"
    if not found["cuda"]:
        return f"{found['wheel']} was built without CUDA"
    return None if find_spec("cupy") else "CuPy is not installed"


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def measure(name: str, base: Path, device: str) -> dict[str, object]:
    """Run a step in a process of its own, so that none holds GPU memory that the next one measures."""
    step = STEPS[name]
    if step.needs_gpu and device == "cpu":
        return {"skipped": "no GPU"}
    try:
        done = subprocess.run(
            [sys.executable, str(HERE), "--step", name, "--folder", str(base), "--device", device],
            capture_output=True,
            text=True,
            timeout=STEP_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done in {STEP_SECONDS} s"}
    if done.returncode:
        return {"failed": " | ".join((done.stdout + done.stderr).strip().splitlines()[-4:])}
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> int:
    """Print the table; return 1 if a step failed."""
    options = arguments()
    if options.supervise:
        return supervise_forced()
    if options.work:
        work(options)
    if options.step:
        result = STEPS[options.step].run(options.folder, options.device)
        print(json.dumps(result))
        return 0
    begin = time.perf_counter()
    found = installed()
    print(json.dumps(found), flush=True)
    device = options.device or "cuda"
    if device == "cuda" and (lacking := without_gpu(found)):
        if options.device:
            sys.exit(f"no GPU: {lacking}.")
        device = "cpu"
        print(f"no GPU: {lacking}. What does not need one runs on the processors.", flush=True)
    report: dict[str, Any] = {"installed": found, "device": device, "rows": options.rows}
    with TemporaryDirectory(dir=options.folder) as folder:
        base = Path(folder) / "ml"
        write_job(base, options.rows, options.columns, options.rounds)
        report["steps"] = {}
        for name, step in STEPS.items():
            result = measure(name, base, device)
            report["steps"][name] = result
            print(f"{step.title:40} {json.dumps(result)}", flush=True)
    report["seconds"] = round(time.perf_counter() - begin, 1)
    print(f"{report['seconds']} s together")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    return int(any("failed" in result for result in report["steps"].values()))


def work(options: argparse.Namespace) -> None:
    """Be the work of a supervised job; the process ends here."""
    from smxgb.processes import child  # noqa: PLC0415

    with child(options.link, options.beat) as link:
        work_forced(link)


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), help="absent: cuda if it can be used")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--columns", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--folder", type=Path, help="where the table is written; absent: the temporary folder"
    )
    parser.add_argument("--out", type=Path, default=Path("build/gpu_check.json"), help="the JSON")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--supervise", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--link", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--beat", type=float, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
