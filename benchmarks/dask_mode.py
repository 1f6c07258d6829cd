"""The Dask mode against the collective mode with as many workers, on the same rows: the price of Dask.

Two workers with one thread each: as two processes of one host in the Dask mode (device=cpu), and as two
hosts on loopback addresses. What the start of the cluster costs shows the same pair of jobs on few rows; the
ratio is that of the jobs less this start.
"""

from __future__ import annotations

import argparse
import socket
from pathlib import Path
from statistics import median

from tables import WRITERS
from two_hosts import NAMES, PARTS, make_host, run

FEW = 1_000
COLUMNS = 28
DASK = {"use_dask_gpu_training": "true", "device": "cpu", "workers_per_host": "2"}


def run_both(folder: Path, kind: str, rows: int, rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """Run both jobs on a table of so many rows; return the seconds of their parts, those of Dask first."""
    data = folder / f"{kind}-{rows}x{COLUMNS}"
    if not (data / "_SUCCESS").exists():
        data.mkdir(parents=True, exist_ok=True)
        WRITERS[kind](data / f"part-0.{kind}", rows, COLUMNS)
        (data / "_SUCCESS").touch()
    settings = {
        "objective": "binary:logistic",
        "num_round": str(rounds),
        "eval_metric": "logloss",
        "nthread": "1",
        "tracker_port": str(free_port()),
    }
    base = folder / f"dask-{rows}"
    dask = run([make_host(base, data, NAMES[0], NAMES[:1], settings | DASK)])
    return dask, run([make_host(base, data, name, NAMES, settings) for name in NAMES])


def free_port() -> int:
    """Return a port that nobody uses: the last job's is not free for a minute."""
    with socket.create_server((NAMES[0], 0)) as server:
        return int(server.getsockname()[1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--kind", choices=WRITERS, default="parquet")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    options = parser.parse_args()
    starts, pairs = (
        [run_both(options.folder, options.kind, rows, options.rounds) for _ in range(options.pairs)]
        for rows in (FEW, options.rows)
    )
    start = median(dask["total"] - collective["total"] for dask, collective in starts)
    print(f"{options.kind}, {options.rows:,} x {COLUMNS}, {options.rounds} rounds, {options.pairs} pairs:")
    print("Dask mode / collective mode, two workers x one thread each, medians")
    for part in PARTS:
        extra = start if part == "total" else 0.0
        ratios = [(dask[part] - extra) / collective[part] for dask, collective in pairs]
        print(
            f"  {part:8} {median(dask[part] for dask, _ in pairs):7.2f} s / "
            f"{median(collective[part] for _, collective in pairs):7.2f} s = {median(ratios):.3f}"
            f"   ({min(ratios):.3f} to {max(ratios):.3f})"
        )
    print(f"  of the total, the start of the cluster is {start:.2f} s, which the ratio leaves out")


if __name__ == "__main__":
    main()
