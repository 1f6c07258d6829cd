"""Make a set of many files to train on, in a folder or in S3.

Its rows are generated, or repeated from a table of yours. A validation set has the same rule and other rows
if it begins with a part that the training set does not have:

scripts/make_dataset s3://BUCKET/train --files 10
scripts/make_dataset s3://BUCKET/validation --files 2 --first-part 10

A public walk-through of SageMaker's XGBoost trains on 1 TB: 10,000 copies of one CSV file of 104 MB.
`scripts/make_dataset s3://BUCKET/train --files 10000 --megabytes 104 --copies` makes that, with one upload
and 9,999 copies within S3.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import boto3
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from aws import AwsError, explained
from botocore.config import Config
from tables import BLOCK, blocks
from tqdm import tqdm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

MEGABYTE = 10**6
LARGEST_COPY = 5 * 10**9
"""Bytes that S3 copies in one request."""


class Place(Protocol):
    """Where the files go."""

    def is_empty(self) -> bool:
        """Return whether nothing is there yet."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""

    def copy(self, source: str, name: str) -> None:
        """Copy a file that was written before."""


@dataclass(frozen=True)
class Folder:
    """A folder of this machine."""

    path: Path

    def is_empty(self) -> bool:
        """Return whether nothing is there yet."""
        return not self.path.exists() or not any(self.path.iterdir())

    def write(self, name: str, content: bytes) -> None:
        """Write a file, which gets its name when it is whole."""
        self.path.mkdir(parents=True, exist_ok=True)
        unfinished = self.path / f".{name}"
        unfinished.write_bytes(content)
        unfinished.replace(self.path / name)

    def copy(self, source: str, name: str) -> None:
        """Copy a file that was written before."""
        shutil.copyfile(self.path / source, self.path / name)


class Bucket:
    """A prefix in S3; `threads` is how many requests come at once."""

    def __init__(self, address: str, threads: int) -> None:
        """Take an address such as s3://bucket/train."""
        self._bucket, _, prefix = address.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix.rstrip('/')}/" if prefix.strip("/") else ""
        retries: dict[str, object] = {"mode": "adaptive", "max_attempts": 10}
        with explained("s3", None):
            self._s3 = boto3.client("s3", config=Config(max_pool_connections=threads, retries=retries))
        self._region = self._s3.meta.region_name

    def is_empty(self) -> bool:
        """Return whether nothing is there yet."""
        with explained("s3:ListBucket", self._region):
            found = self._s3.list_objects_v2(Bucket=self._bucket, Prefix=self._prefix, MaxKeys=1)
        return "Contents" not in found

    def write(self, name: str, content: bytes) -> None:
        """Write an object."""
        with explained("s3:PutObject", self._region):
            self._s3.upload_fileobj(io.BytesIO(content), self._bucket, self._prefix + name)

    def copy(self, source: str, name: str) -> None:
        """Copy an object within S3, without its bytes passing through here."""
        origin = {"Bucket": self._bucket, "Key": self._prefix + source}
        with explained("s3:GetObject or s3:PutObject", self._region):
            self._s3.copy_object(Bucket=self._bucket, Key=self._prefix + name, CopySource=origin)


def encoded(batches: Iterable[pa.RecordBatch], form: str, *, header: bool = False) -> bytes:
    """Return the rows as the bytes of one file: Parquet, or CSV without an index, with a header if asked."""
    stream = io.BytesIO()
    table = pa.Table.from_batches(list(batches))
    if form == "parquet":
        pyarrow.parquet.write_table(table, stream, row_group_size=BLOCK)
    else:
        pyarrow.csv.write_csv(table, stream, pyarrow.csv.WriteOptions(include_header=header))
    return stream.getvalue()


def generated(rows: int, columns: int, part: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file of a generated table, whose label is 0 or 1 in the first column."""
    return blocks(rows, columns, part=part)


def repeated(table: pa.Table, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield so many rows of a table, from its beginning again as often as needed."""
    whole, rest = divmod(rows, table.num_rows)
    for _ in range(whole):
        yield from table.to_batches()
    yield from table.slice(0, rest).to_batches()


def read_table(path: Path) -> pa.Table:
    """Read a Parquet file, or a CSV file with a header."""
    table = pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)
    if not table.num_rows:
        sys.exit(f"scripts/make_dataset: {path} has no rows.")
    return table


def rows_of(size: int, sample: Callable[[int], bytes]) -> int:
    """Return how many rows make a file of `size` bytes; `sample` encodes so many rows."""
    few, many = len(sample(1_000)), len(sample(11_000))
    each = (many - few) / 10_000
    return max(1, round((size - few) / each) + 1_000)


def make(
    place: Place, parts: Mapping[str, int], content: Callable[[int], bytes], *, copies: bool, threads: int
) -> None:
    """Write all files in parallel under a progress bar; `content` makes the bytes of a part."""
    (first, number), *others = parts.items()
    place.write(first, content(number))

    def one(name: str, number: int) -> None:
        if copies:
            place.copy(first, name)
        else:
            place.write(name, content(number))

    with (
        tqdm(total=len(parts), initial=1, unit="file", dynamic_ncols=True) as bar,
        ThreadPoolExecutor(threads) as pool,
    ):
        started = [pool.submit(one, name, number) for name, number in others]
        try:
            for done in as_completed(started):
                done.result()
                bar.update()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/make_dataset", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("place", help="a new folder, or s3://BUCKET/PREFIX without objects")
    parser.add_argument("--files", type=int, default=10, help="how many (default 10)")
    parser.add_argument(
        "--first-part",
        type=int,
        default=0,
        metavar="N",
        help="number of the first file (default 0); files of different numbers share no generated row",
    )
    parser.add_argument(
        "--megabytes", type=float, default=10, help="size of each, in 10^6 bytes (default 10)"
    )
    parser.add_argument("--format", choices=["csv", "parquet"], default="csv")
    parser.add_argument(
        "--table", type=Path, help="repeat the rows of this CSV (with header) or Parquet file in every file"
    )
    parser.add_argument(
        "--header",
        action="store_true",
        help="begin CSV files with the columns' names, by which a job then finds label_column; without, the "
        "first column should be the label, which is what a job takes",
    )
    parser.add_argument("--columns", type=int, default=28, help="features of a generated table (default 28)")
    parser.add_argument(
        "--copies", action="store_true", help="make one file and copy it; --table always does"
    )
    parser.add_argument("--threads", type=int, default=2 * (os.cpu_count() or 1), help="files at once")
    return parser.parse_args()


def main() -> None:
    """Make the files that the arguments ask for."""
    options = _arguments()
    if min(options.files, options.megabytes, options.columns, options.threads) <= 0:
        sys.exit("scripts/make_dataset: --files, --megabytes, --columns and --threads must be above 0.")
    if options.first_part < 0 or (options.first_part and options.table):
        sys.exit(
            "scripts/make_dataset: --first-part must be 0 or above, and without --table, whose rows are the "
            "same in every file."
        )
    size = round(options.megabytes * MEGABYTE)
    if size > LARGEST_COPY:
        sys.exit("scripts/make_dataset: a file has at most 5,000 megabytes, as S3 copies no more at once.")
    table = read_table(options.table) if options.table else None

    def content(number: int, rows: int) -> bytes:
        batches = generated(rows, options.columns, number) if table is None else repeated(table, rows)
        return encoded(batches, options.format, header=options.header)

    parts = range(options.first_part, options.first_part + options.files)
    rows = rows_of(size, partial(content, parts[0]))
    try:
        in_s3 = options.place.startswith("s3://")
        place: Place = Bucket(options.place, options.threads) if in_s3 else Folder(Path(options.place))
        if not place.is_empty():
            sys.exit(f"scripts/make_dataset: {options.place} holds files already: give a place without any.")
        names = {f"part-{part:05d}.{options.format}": part for part in parts}
        copies = options.copies or table is not None
        make(place, names, partial(content, rows=rows), copies=copies, threads=options.threads)
    except AwsError as error:
        sys.exit(f"scripts/make_dataset: {options.place}: {error}")
    files = "1 file" if options.files == 1 else f"{options.files:,} files"
    print(f"{files} of {rows:,} rows each in {options.place}")


if __name__ == "__main__":
    main()
