"""Whole jobs against their floor: time, memory and start, as ratios taken in one run.

For CSV and Parquet: pairs of a job (a process started as SageMaker starts it) and its floor (`floor.py`), in
turn, and the medians of the ratios. Memory: bytes a row above the same job on 1,000 rows. Start: from the
start of a job on 4,000 rows to its first evaluation line, against importing xgboost and pyarrow alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tables import WRITERS

HERE = Path(__file__).parent
PARTS = ("load", "matrix", "train", "total")
IMPORTS = "import sys; sys.modules.update(dict.fromkeys(['pandas', 'sklearn'])); import xgboost, pyarrow"


@dataclass(frozen=True)
class Measured:
    """Seconds of each part of a run, and its peak of resident memory in bytes."""

    seconds: dict[str, float]
    peak: int


def job_folder(base: Path, kind: str, rows: int, columns: int, rounds: int) -> Path:
    """Make the /opt/ml folder of a job on a table of the benchmark, once; return it."""
    folder = base / f"{kind}-{rows}x{columns}-{rounds}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "input/data/train").mkdir(parents=True)
        (folder / "input/config").mkdir()
        WRITERS[kind](folder / f"input/data/train/part-0.{kind}", rows, columns)
        settings = {"objective": "binary:logistic", "num_round": rounds, "max_depth": 6, "eval_metric": "auc"}
        (folder / "input/config/hyperparameters.json").write_text(
            json.dumps({k: str(v) for k, v in settings.items()})
        )
        (folder / "complete").touch()
    return folder


def run_job(folder: Path) -> Measured:
    """Run a job as SageMaker does."""
    start = time.perf_counter()
    environ = os.environ | {"SAGEMAKER_BASE_DIR": str(folder)}
    subprocess.run(
        [sys.executable, "-m", "smxgb", "train"], check=True, env=environ, stdout=subprocess.DEVNULL
    )
    total = time.perf_counter() - start
    report = json.loads((folder / "output/data/metrics.json").read_text())
    seconds = {name: phase["seconds"] for name, phase in report["phases"].items()}
    return Measured(seconds | {"total": total}, report["peak_memory"])


def run_floor(folder: Path, rounds: int) -> Measured:
    """Run the floor on the same file, with the same threads."""
    (file,) = (folder / "input/data/train").iterdir()
    start = time.perf_counter()
    threads = str(len(os.sched_getaffinity(0)))
    command = [sys.executable, str(HERE / "floor.py"), str(file), str(rounds), threads]
    environ = {"OMP_WAIT_POLICY": "passive"} | os.environ
    done = subprocess.run(command, check=True, env=environ, stdout=subprocess.PIPE)
    total = time.perf_counter() - start
    said = json.loads(done.stdout)
    return Measured(said["seconds"] | {"total": total}, said["peak_memory"])


def seconds_to_first_round(folder: Path) -> float:
    """Return the time from the start of a job to its first evaluation line."""
    environ = os.environ | {"SAGEMAKER_BASE_DIR": str(folder)}
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "smxgb", "train"], env=environ, stdout=subprocess.PIPE
    ) as job:
        for line in job.stdout or ():
            if line.startswith(b"[0]"):
                seconds = time.perf_counter() - start
    if job.returncode:
        raise SystemExit("the job failed")
    return seconds


def seconds_to_import() -> float:
    """Return the time that a process takes which only imports xgboost and pyarrow."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORTS], check=True)
    return time.perf_counter() - start


def compare(base: Path, kind: str, options: argparse.Namespace) -> None:
    """Print the table of one format."""
    folder = job_folder(base, kind, options.rows, options.columns, options.rounds)
    small = job_folder(base, kind, 1_000, options.columns, options.rounds)
    run_job(folder), run_floor(folder, options.rounds)  # the first of each reads the files from disk
    pairs = [(run_job(folder), run_floor(folder, options.rounds)) for _ in range(options.pairs)]
    print(
        f"\n{kind}: {options.rows:,} x {options.columns}, {options.rounds} rounds, medians of "
        f"{options.pairs} pairs"
    )
    for part in PARTS:
        ratios = [job.seconds[part] / floor.seconds[part] for job, floor in pairs]
        print(
            f"  {part:8} {median(job.seconds[part] for job, _ in pairs):7.2f} s / "
            f"{median(floor.seconds[part] for _, floor in pairs):7.2f} s = {median(ratios):.3f}"
            f"   ({min(ratios):.3f} to {max(ratios):.3f})"
        )
    peak, floor_peak = median(job.peak for job, _ in pairs), median(floor.peak for _, floor in pairs)
    above = peak - median(run_job(small).peak for _ in range(options.pairs))
    print(f"  peak     {peak / 2**20:7.0f} MiB / {floor_peak / 2**20:.0f} MiB = {peak / floor_peak:.3f}")
    limit = 6 * options.columns + 80
    print(f"  memory above base: {above / options.rows:.0f} bytes a row (6F+80 is {limit})")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    options = parser.parse_args()
    for kind in WRITERS:
        compare(options.folder, kind, options)
    folder = job_folder(options.folder, "csv", 4_000, options.columns, options.rounds)
    pairs = [(seconds_to_first_round(folder), seconds_to_import()) for _ in range(2 * options.pairs + 1)]
    start, imports = (median(side) for side in zip(*pairs, strict=True))
    ratio = median(first / alone for first, alone in pairs)
    print(f"\nstart to first round, 4,000 rows: {start:.2f} s / imports alone {imports:.2f} s = {ratio:.2f}")


if __name__ == "__main__":
    main()
