"""Two hosts with one thread each against one host with two threads, on the same rows: the price of a group.

The hosts are processes on loopback addresses that share the folder of the data, so each reads its half. In
a group a host also waits for the others at the start and at the end, which only the total shows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from tables import WRITERS

NAMES = ("127.0.0.1", "127.0.0.2")
PARTS = ("load", "matrix", "train", "total")


def free_ports() -> dict[str, str]:
    """Return settings with ports that nobody uses: those of the run before are held for a minute."""
    sockets = {name: socket.create_server((NAMES[0], 0)) for name in ("control_port", "tracker_port")}
    ports = {name: str(each.getsockname()[1]) for name, each in sockets.items()}
    for each in sockets.values():
        each.close()
    return ports


def make_host(base: Path, data: Path, name: str, names: tuple[str, ...], settings: dict[str, str]) -> Path:
    """Make the /opt/ml folder of a host that reads the files of `data`; return it."""
    folder = base / f"{len(names)}-hosts" / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "input/data").mkdir(parents=True)
    (folder / "input/config").mkdir()
    (folder / "input/data/train").symlink_to(data.absolute(), target_is_directory=True)
    config = {"hyperparameters": settings, "resourceconfig": {"current_host": name, "hosts": names}}
    for file, content in config.items():
        (folder / f"input/config/{file}.json").write_text(json.dumps(content))
    return folder


def run(hosts: list[Path]) -> dict[str, float]:
    """Run a job on all hosts; return the seconds of the leader's phases, and of the whole until it ended."""
    begin = time.perf_counter()
    jobs = [
        subprocess.Popen(
            [sys.executable, "-m", "smxgb", "train"],
            env=os.environ | {"SAGEMAKER_BASE_DIR": str(host)},
            stdout=subprocess.DEVNULL,
        )
        for host in hosts
    ]
    leader = jobs[0].wait()
    total = time.perf_counter() - begin
    if leader or any(job.wait() for job in jobs):
        raise SystemExit("the job failed")
    report = json.loads((hosts[0] / "output/data/metrics.json").read_text())
    return {name: phase["seconds"] for name, phase in report["phases"].items()} | {"total": total}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--columns", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--kind", choices=WRITERS, default="parquet")
    parser.add_argument("--metric", default="logloss")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    options = parser.parse_args()
    data = options.folder / f"{options.kind}-{options.rows}x{options.columns}"
    if not (data / "_SUCCESS").exists():
        data.mkdir(parents=True, exist_ok=True)
        WRITERS[options.kind](data / f"part-0.{options.kind}", options.rows, options.columns)
        (data / "_SUCCESS").touch()
    settings = {
        "objective": "binary:logistic",
        "num_round": str(options.rounds),
        "eval_metric": options.metric,
    }
    pairs = []
    for _ in range(options.pairs):
        single, shared = settings | {"nthread": "2"}, settings | {"nthread": "1"} | free_ports()
        two = run([make_host(options.folder, data, name, NAMES, shared) for name in NAMES])
        one = run([make_host(options.folder, data, NAMES[0], NAMES[:1], single)])
        pairs.append((two, one))
    print(f"{options.kind}, {options.rows:,} x {options.columns}, {options.rounds} rounds:")
    print(f"two hosts x one thread / one host x two threads, medians of {options.pairs} pairs")
    for part in PARTS:
        ratios = [both[part] / alone[part] for both, alone in pairs]
        print(
            f"  {part:8} {median(both[part] for both, _ in pairs):7.2f} s / "
            f"{median(alone[part] for _, alone in pairs):7.2f} s = {median(ratios):.3f}"
            f"   ({min(ratios):.3f} to {max(ratios):.3f})"
        )


if __name__ == "__main__":
    main()
