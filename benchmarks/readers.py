"""Readers against their floors: MB/s and rows/s of each format, taken in turn in one run.

A reader runs as a job uses it, up to its last batch. Its floor is what reads the same bytes and does nothing
else: Arrow's CSV reader and Parquet reader in threads, XGBoost's own parser of libsvm (C++, one thread),
protobuf's parser called once for each record, and the decompressor alone. A ratio is the reader's time, or
processor time, over the floor's: the median of some pairs.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tables import blocks, write_csv, write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ABSENT = 0.2
"""The share of values that a sparse table leaves out."""

READ = """
import sys, time
from pathlib import Path
from smxgb.__main__ import KEPT_OUT, _keep_out
_keep_out(KEPT_OUT)
from smxgb.job.channels import Channel, DataFile
from smxgb.rows.reading import ReadingSettings
from smxgb.rows.readers import open_reader
path, content_type, threads = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
file = DataFile(path, path.stat().st_size)
channel = Channel("train", path.parent, content_type, "File", "FullyReplicated", (file,))
def run():
    reader = open_reader(channel, ReadingSettings(), threads=threads, like=None)
    for batch in reader.batches():
        pass
"""
FLOORS = {
    "csv": """
import pyarrow as pa, pyarrow.csv as csv
def run():
    pa.set_cpu_count(threads)
    names = [f"c{i}" for i in range(open(path).readline().count(",") + 1)]
    csv.read_csv(path, csv.ReadOptions(column_names=names),
                 convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32())))
""",
    "parquet": """
import pyarrow as pa, pyarrow.parquet as pq
def run():
    pa.set_cpu_count(threads)
    for batch in pq.ParquetFile(path).iter_batches():
        pass
""",
    "libsvm": """
import warnings
import xgboost
warnings.simplefilter("ignore")
def run():
    xgboost.DMatrix(f"{path}?format=libsvm", nthread=1)
""",
    "recordio-protobuf": """
import struct
from smxgb.rows.readers.recordio.record_schema import Record
def run():
    data = open(path, "rb").read()
    place = 0
    while place < len(data):
        size = struct.unpack_from("<I", data, place + 4)[0]
        Record.FromString(data[place + 8 : place + 8 + size])
        place += 8 + size + -size % 4
""",
    "gzip": """
import gzip
def run():
    with gzip.open(path) as stream:
        while stream.read(1 << 20):
            pass
""",
}
TIMED = """
run()
start, used = time.perf_counter(), time.process_time()
run()
print(time.perf_counter() - start, time.process_time() - used)
"""


@dataclass(frozen=True)
class Case:
    """A file, its content type, and the floor that it is held against."""

    name: str
    content_type: str
    floor: str
    write: Callable[[Path, int, int], None]


def rows_of(rows: int, columns: int) -> Iterator[tuple[float, list[float]]]:
    """Yield the benchmark's rows: a label and its values."""
    for block in blocks(rows, columns):
        label, *values = (column.to_pylist() for column in block.columns)
        yield from zip(label, map(list, zip(*values, strict=True)), strict=True)


def present(number: int, columns: int) -> list[int]:
    """Return the columns that row `number` of a sparse table has."""
    step = round(1 / ABSENT)
    return [column for column in range(columns) if (column + number) % step]


def write_libsvm(path: Path, rows: int, columns: int) -> None:
    """Write the table with a fifth of its values absent."""
    with path.open("w", encoding="ascii") as stream:
        for number, (label, row) in enumerate(rows_of(rows, columns)):
            pairs = (f"{column}:{row[column]:.8g}" for column in present(number, columns))
            stream.write(f"{label:g} {' '.join(pairs)}\n")


def write_dense(path: Path, rows: int, columns: int) -> None:
    """Write the table as dense records."""
    write_records(path, ((label, row, []) for label, row in rows_of(rows, columns)))


def write_sparse(path: Path, rows: int, columns: int) -> None:
    """Write the table as sparse records, with a fifth of its values absent."""
    kept = (
        (label, row, present(number, columns)) for number, (label, row) in enumerate(rows_of(rows, columns))
    )
    write_records(path, ((label, [row[key] for key in keys], keys) for label, row, keys in kept))


def write_records(path: Path, rows: Iterator[tuple[float, list[float], list[int]]]) -> None:
    """Write labels, values and keys as RecordIO-protobuf."""
    from smxgb.rows.readers.recordio.record_schema import Record  # noqa: PLC0415
    from smxgb.rows.readers.recordio_framing import HEADER, MAGIC  # noqa: PLC0415 - only here

    with path.open("wb") as stream:
        for label, values, keys in rows:
            record = Record()
            record.features["values"].float32_tensor.values.extend(values)
            record.features["values"].float32_tensor.keys.extend(keys)
            record.label["values"].float32_tensor.values.append(label)
            data = record.SerializeToString()
            stream.write(HEADER.pack(MAGIC, len(data)) + data + b"\0" * (-len(data) % 4))


def packed(write: Callable[[Path, int, int], None]) -> Callable[[Path, int, int], None]:
    """Return a writer that compresses what `write` writes."""

    def write_packed(path: Path, rows: int, columns: int) -> None:
        plain = path.with_suffix(".plain")
        write(plain, rows, columns)
        path.write_bytes(gzip.compress(plain.read_bytes(), 6))
        plain.unlink()

    return write_packed


CASES = (
    Case("csv", "csv", "csv", write_csv),
    Case("csv.gz", "csv", "gzip", packed(write_csv)),
    Case("parquet", "parquet", "parquet", write_parquet),
    Case("libsvm", "libsvm", "libsvm", write_libsvm),
    Case("records-dense", "recordio-protobuf", "recordio-protobuf", write_dense),
    Case("records-sparse", "recordio-protobuf", "recordio-protobuf", write_sparse),
)


def timed(code: str, *arguments: object) -> tuple[float, float]:
    """Return the seconds, and the processor's seconds, of the second of two runs in a process of its own."""
    environ = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "jemalloc", "OMP_WAIT_POLICY": "passive"}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, check=True, env=environ, stdout=subprocess.PIPE, text=True)
    wall, used = map(float, done.stdout.split()[-2:])
    return wall, used


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=28)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("build/bench/readers"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    threads = len(os.sched_getaffinity(0))
    print(f"{options.rows:,} rows x {options.columns}, {threads} threads, medians of {options.pairs} pairs")
    print(f"{'':15}     MB   MB/s  k rows/s  MB/s a core  floor MB/s  time / floor  cpu / floor")
    for case in CASES:
        path = options.folder / f"{options.rows}x{options.columns}.{case.name}"
        if not path.exists():
            case.write(path, options.rows, options.columns)
        size = path.stat().st_size / 1e6
        head = "import sys, time\npath, threads = sys.argv[1], int(sys.argv[3])\n"
        pairs = [
            (
                timed(READ + TIMED, path, case.content_type, threads),
                timed(head + FLOORS[case.floor] + TIMED, path, case.content_type, threads),
            )
            for _ in range(options.pairs)
        ]
        wall, used = (median(ours[part] for ours, _ in pairs) for part in (0, 1))
        floor = median(theirs[0] for _, theirs in pairs)
        ratio, cpu_ratio = (median(ours[part] / theirs[part] for ours, theirs in pairs) for part in (0, 1))
        print(
            f"{case.name:15} {size:6.0f} {size / wall:6.0f} {options.rows / wall / 1e3:9.0f} "
            f"{size / used:12.0f} {size / floor:11.0f} {ratio:13.2f} {cpu_ratio:12.2f}"
        )


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"({time.perf_counter() - start:.0f} s)")
