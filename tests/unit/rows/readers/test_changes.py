"""Files that something beside the job changes while they are read: the job fails, and loses no row."""

from __future__ import annotations

import gzip
import io
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.recordio import framed, record, tensor

from smxgb.errors import PlatformError
from smxgb.job import Channel
from smxgb.job.data_files import DataFile, find_files
from smxgb.rows.readers import open_reader
from smxgb.rows.reading import ReadingSettings
from smxgb.rows.shares import split

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smxgb.job.channels import InputMode
    from smxgb.job.content_types import ContentType
    from smxgb.rows.readers import Reader

ROWS = 3000


def table(rows: int) -> bytes:
    numbers = [float(row) for row in range(rows)]
    buffer = io.BytesIO()
    pq.write_table(pa.table({"y": numbers, "x": numbers, "z": numbers}), buffer, row_group_size=1000)
    return buffer.getvalue()


WRITERS: dict[str, Callable[[int], bytes]] = {
    "csv": lambda rows: b"".join(b"%d,%d.5,%d\n" % (row % 3, row, -row) for row in range(rows)),
    "libsvm": lambda rows: b"".join(b"%d 0:%d.5 1:%d\n" % (row % 3, row, -row) for row in range(rows)),
    "recordio-protobuf": lambda rows: framed(
        record(tensor([row + 0.5, -row]), tensor([row % 3])) for row in range(rows)
    ),
    "parquet": table,
}


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size * 2 // 3)


def cut_between_rows(path: Path) -> None:
    text = path.read_bytes()
    os.truncate(path, text.rindex(b"\n", 0, len(text) // 2) + 1)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(path.read_bytes())


def replace(path: Path) -> None:
    new = path.with_name("_new")
    new.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    new.rename(path)


def rewrite(path: Path) -> None:
    """Write other rows in place, of the same size."""
    with path.open("r+b") as file:
        file.write(path.read_bytes().replace(b"7", b"8"))


CHANGES = {
    "truncated": truncate,
    "grown": grow,
    "replaced": replace,
    "removed": lambda path: path.unlink(),
}


def channel(folder: Path, content_type: ContentType, mode: InputMode, content: bytes) -> Channel:
    folder.mkdir()
    (folder / "a").write_bytes(content)
    files, _ = find_files(folder, streamed=mode == "FastFile")
    return Channel("train", folder, content_type, mode, "FullyReplicated", files)


def opened(channel_: Channel) -> Reader:
    return open_reader(channel_, ReadingSettings(), threads=1, like=None)


def rows(reader: Reader) -> int:
    return sum(batch.rows for batch in reader.batches())


@pytest.mark.parametrize("mode", ["File", "FastFile"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("content_type", WRITERS)
def test_a_file_that_changed_after_it_was_listed_fails_the_job(
    tmp_path: Path, content_type: ContentType, change: Callable[[Path], None], mode: InputMode
) -> None:
    whole = channel(tmp_path / "train", content_type, mode, WRITERS[content_type](ROWS))
    change(whole.files[0].path)
    with pytest.raises((PlatformError, FileNotFoundError), match=r"train/a"):
        rows(opened(whole))


@pytest.mark.parametrize("mode", ["File", "FastFile"])
@pytest.mark.parametrize("change", [truncate, grow])
@pytest.mark.parametrize("content_type", ["csv", "libsvm", "recordio-protobuf"])
def test_a_file_that_changes_while_it_is_read_fails_the_job(
    tmp_path: Path, content_type: ContentType, change: Callable[[Path], None], mode: InputMode
) -> None:
    whole = channel(tmp_path / "train", content_type, mode, WRITERS[content_type](ROWS) * 150)
    batches = opened(whole).batches()
    next(batches)
    change(whole.files[0].path)
    with pytest.raises(PlatformError, match="bytes when the job listed it, and has"):
        list(batches)


@pytest.mark.parametrize("change", [*CHANGES.values(), rewrite])
@pytest.mark.parametrize("finished", [0, 1, 2])
def test_parquet_that_changes_in_or_before_any_pass_fails_the_job(
    tmp_path: Path, change: Callable[[Path], None], finished: int
) -> None:
    reader = opened(channel(tmp_path / "train", "parquet", "File", table(ROWS)))
    for _ in range(finished):
        assert rows(reader) == ROWS
    change(tmp_path / "train" / "a")
    with pytest.raises((PlatformError, FileNotFoundError), match=r"train/a"):
        rows(reader)


def test_a_file_that_is_replaced_while_it_is_read_is_read_to_its_own_end(tmp_path: Path) -> None:
    whole = channel(tmp_path / "train", "csv", "File", WRITERS["csv"](ROWS) * 150)
    batches = opened(whole).batches()
    before = next(batches).rows
    replace(whole.files[0].path)
    assert before + sum(batch.rows for batch in batches) == 150 * ROWS


@pytest.mark.parametrize("content_type", ["csv", "libsvm", "recordio-protobuf"])
def test_a_file_that_is_written_again_with_the_same_size_fails_the_job(
    tmp_path: Path, content_type: ContentType
) -> None:
    whole = channel(tmp_path / "train", content_type, "File", WRITERS[content_type](ROWS))
    os.utime(whole.files[0].path, ns=(1, 1))
    with pytest.raises(PlatformError, match="was written again after the job had listed it"):
        rows(opened(whole))


@pytest.mark.parametrize("change", [truncate, grow])
def test_a_compressed_file_that_changed_fails_the_job(tmp_path: Path, change: Callable[[Path], None]) -> None:
    whole = channel(tmp_path / "train", "csv", "FastFile", gzip.compress(WRITERS["csv"](ROWS)))
    change(whole.files[0].path)
    with pytest.raises(PlatformError, match="bytes when the job listed it, and has"):
        rows(opened(whole))


@pytest.mark.parametrize(
    ("content_type", "change"),
    [
        ("csv", cut_between_rows),
        *((kind, change) for kind in ("csv", "parquet") for change in (grow, truncate)),
    ],
)
def test_each_part_of_a_changed_file_fails_the_job(
    tmp_path: Path, content_type: ContentType, change: Callable[[Path], None]
) -> None:
    whole = channel(tmp_path / "train", content_type, "FastFile", WRITERS[content_type](ROWS))
    parts = [split(whole, worker, 3) for worker in range(3)]
    change(whole.files[0].path)
    for files in parts:
        part = Channel("train", whole.folder, content_type, "FastFile", "FullyReplicated", files)
        with pytest.raises(PlatformError, match="bytes when the job listed it, and has"):
            rows(opened(part))


def test_a_file_that_nobody_changes_has_all_its_rows(tmp_path: Path) -> None:
    for content_type, write in WRITERS.items():
        whole = channel(tmp_path / content_type, content_type, "File", write(ROWS))  # type: ignore[arg-type]
        assert all(isinstance(file, DataFile) and file.modified for file in whole.files)
        assert rows(opened(whole)) == ROWS
