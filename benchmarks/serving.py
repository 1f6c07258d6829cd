"""The server against Flask on gunicorn with gevent (AWS's way), taken in turn in one run.

Each serves one model of 28 features and 100 trees with one process. A client in another process keeps a
connection open and asks again and again: for one row of CSV, and for 1,000. Requests a second count the
processor time of the server, for the client shares the machine. Numbers of a busy machine mean nothing: read
the ratios.
"""

from __future__ import annotations

import argparse
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from statistics import median

import numpy as np
import xgboost as xgb

FEATURES, TREES = 28, 100
REPOSITORY = Path(__file__).parents[1]


@dataclass(frozen=True)
class Served:
    """A server that runs."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    start: float


@dataclass(frozen=True)
class Measured:
    """Times of requests, in milliseconds, and requests for each second of processor time."""

    p50: float
    p99: float
    rate: float


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3, help="how often the two take turns")
    parser.add_argument("--seconds", type=float, default=3, help="how long each turn takes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        rows = _write_model(base)
        servers = [_ours(base), _flask(base)]
        try:
            for count in (1, 1000):
                body = "".join(
                    ",".join(f"{value:.6g}" for value in row) + "\n" for row in rows[:count]
                ).encode()
                _compare(servers, body, count, arguments.pairs, arguments.seconds)
            for server in servers:
                pids = _family(server.process.pid)
                print(f"{server.name}: first 200 of /ping after {server.start:.2f} s, {_resident(pids)} MiB")
        finally:
            for server in servers:
                server.process.terminate()
                server.process.wait()


def _compare(servers: list[Served], body: bytes, count: int, pairs: int, seconds: float) -> None:
    found: dict[str, list[Measured]] = {server.name: [] for server in servers}
    for _ in range(pairs):
        for server in servers:
            found[server.name].append(_measure(server, body, seconds))
    for name, turns in found.items():
        p50, p99, rate = (median(getattr(turn, key) for turn in turns) for key in ("p50", "p99", "rate"))
        print(f"{name}, {count} rows: p50 {p50:.2f} ms, p99 {p99:.2f} ms, {rate:,.0f} requests/s of a core")
    ours, other = (found[server.name] for server in servers)
    ratio = median(one.rate / two.rate for one, two in zip(ours, other, strict=True))
    print(f"{count} rows: {ratio:.1f} times the requests for each core")


def _measure(server: Served, body: bytes, seconds: float) -> Measured:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    pids = _family(server.process.pid)
    used, times, end = _processor_seconds(pids), [], time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        connection.request("POST", "/invocations", body, {"Content-Type": "text/csv"})
        response = connection.getresponse()
        data = response.read()
        times.append(time.perf_counter() - begun)
        if response.status != HTTPStatus.OK:
            raise SystemExit(f"{server.name} answered {response.status}: {data.decode()}")
    connection.close()
    used = _processor_seconds(pids) - used
    p50, p99 = np.percentile(times, [50, 99]) * 1000
    return Measured(float(p50), float(p99), len(times) / max(used, 0.01))


def _ours(base: Path) -> Served:
    port = _free_port()
    environ = {"SAGEMAKER_BASE_DIR": str(base), "SAGEMAKER_BIND_TO_PORT": str(port)}
    command = [sys.executable, "-m", "smxgb", "serve"]
    return _started("smxgb", command, {**environ, "SAGEMAKER_MODEL_SERVER_WORKERS": "1"}, port)


def _flask(base: Path) -> Served:
    python, port = _python(), _free_port()
    command = [
        str(python),
        "-m",
        "gunicorn",
        "-k",
        "gevent",
        "-w",
        "1",
        "-b",
        f"127.0.0.1:{port}",
        "flask_app:app",
    ]
    model = {"MODEL": str(base / "model" / "xgboost-model.ubj"), "OMP_NUM_THREADS": "1"}
    return _started("Flask", [*command, "--chdir", str(Path(__file__).parent)], model, port)


def _started(name: str, command: list[str], environ: dict[str, str], port: int) -> Served:
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, env={**os.environ, **environ}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/ping")
            connection.getresponse().read()
        except OSError:
            time.sleep(0.01)
        else:
            return Served(name, process, port, time.perf_counter() - begun)
    raise SystemExit(f"{name} ended: {' '.join(command)}")


def _write_model(base: Path) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(5000, FEATURES))
    labels = (rows[:, 0] + rows[:, 1] > 0).astype(float)
    booster = xgb.train({"objective": "binary:logistic"}, xgb.DMatrix(rows, labels), TREES)
    booster.feature_names = booster.feature_types = None
    (base / "model").mkdir()
    booster.save_model(base / "model" / "xgboost-model.ubj")
    return rows[:1000]


def _python() -> Path:
    """Return the Python of `.cache/flask`, made from its lock file where it is not up to date."""
    lock = (REPOSITORY / "requirements" / "flask.txt").read_text()
    folder = REPOSITORY / ".cache" / "flask"
    python, installed = folder / "bin" / "python", folder / "installed.txt"
    if not (installed.exists() and installed.read_text() == lock):
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        requirements = REPOSITORY / "requirements" / "flask.txt"
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "--require-hashes", "-r", requirements], check=True
        )
        installed.write_text(lock)
    return python


def _family(pid: int) -> list[int]:
    """Return a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def _processor_seconds(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _resident(pids: list[int]) -> list[int]:
    """Return the MiB of memory of each process."""
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
    return [count * os.sysconf("SC_PAGESIZE") >> 20 for count in pages]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
