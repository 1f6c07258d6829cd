from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smxgb.errors import UserError
from smxgb.job.channels import Channel, DataFile
from smxgb.rows.readers import open_reader
from smxgb.rows.readers.csv.blocks import read_part
from smxgb.rows.reading_settings import ReadingSettings
from smxgb.rows.shares import split


def channel(folder: Path, content_type: str = "csv") -> Channel:
    files = tuple(DataFile(path, path.stat().st_size) for path in sorted(folder.iterdir()))
    return Channel("train", folder, content_type, "File", "FullyReplicated", files)  # type: ignore[arg-type]


def labels(channel_: Channel, files: tuple[DataFile, ...]) -> list[float]:
    if not files:
        return []
    own = Channel("train", channel_.folder, channel_.content_type, "File", "FullyReplicated", files)
    reader = open_reader(own, ReadingSettings(), threads=1, like=None)
    return [float(label) for batch in reader.batches() for label in batch.roles["label"]]


@settings(deadline=None)
@given(
    lines=st.lists(st.integers(1, 30), min_size=1, max_size=60),
    files=st.integers(1, 4),
    workers=st.integers(1, 7),
    newline=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    header=st.booleans(),
)
def test_each_record_is_read_by_one_worker_wherever_files_are_cut(
    lines: list[int], files: int, workers: int, newline: str, *, last: bool, header: bool
) -> None:
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        written = []
        for number in range(files):
            rows = [
                f"{index},{'1' * width}" for index, width in enumerate(lines[number::files], number * 100)
            ]
            if not rows:
                continue
            written += [float(row.split(",")[0]) for row in rows]
            text = newline.join([*(["y,x"] if header else []), *rows]) + (newline if last else "")
            (folder / f"{number}.csv").write_text(text, newline="")
        whole = channel(folder)
        read = [label for worker in range(workers) for label in labels(whole, split(whole, worker, workers))]
    assert sorted(read) == written


@settings(deadline=None)
@given(
    data=st.lists(st.text("ab", max_size=5), max_size=20).map("\n".join),
    size=st.integers(1, 9),
    cuts=st.data(),
)
def test_parts_of_a_text_join_to_the_text(data: str, size: int, cuts: st.DataObject) -> None:
    content = data.encode()
    at = sorted(cuts.draw(st.lists(st.integers(0, len(content)), max_size=4)))
    with tempfile.TemporaryDirectory() as base:
        path = Path(base) / "text"
        path.write_bytes(content)
        ends = [0, *at, len(content)]
        parts = [
            b"".join(block.data for block in read_part(DataFile(path, end - begin, begin), "a", ",", size, 0))
            for begin, end in pairwise(ends)
        ]
    assert b"".join(parts) == content


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_row_groups_of_few_files_are_dealt_out(tmp_path: Path, workers: int) -> None:
    for number in range(2):
        rows = range(number * 100, number * 100 + 100)
        table = pa.table({"y": pa.array(rows, pa.float32()), "x": pa.array(rows, pa.float32())})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=10)
    whole = channel(tmp_path, "parquet")
    read = [labels(whole, split(whole, worker, workers)) for worker in range(workers)]
    assert sorted(label for part in read for label in part) == list(range(200))
    assert max(map(len, read)) - min(map(len, read)) <= 20


def files_of(*sizes: int) -> Channel:
    files = tuple(DataFile(Path(f"/data/{number}.csv"), size) for number, size in enumerate(sizes))
    return Channel("train", Path("/data"), "csv", "File", "FullyReplicated", files)


@given(st.lists(st.integers(1, 1000), min_size=5, max_size=40), st.integers(1, 5))
def test_whole_files_are_balanced_by_bytes_and_kept_in_order(sizes: list[int], workers: int) -> None:
    whole = files_of(*sizes)
    shares = [split(whole, worker, workers) for worker in range(workers)]
    assert sorted(file.path for share in shares for file in share) == sorted(
        file.path for file in whole.files
    )
    loads = [sum(file.size for file in share) for share in shares]
    assert max(loads) - min(loads) <= max(sizes)
    assert all(list(share) == sorted(share, key=whole.files.index) for share in shares)


def test_with_groups_no_file_is_cut() -> None:
    whole = files_of(100)
    assert [split(whole, worker, 3, whole=True) for worker in range(3)] == [whole.files, (), ()]


def test_a_file_with_quotes_is_not_cut(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('1,"two\nlines"\n' * 100)
    whole = channel(tmp_path)
    assert [split(whole, worker, 3) for worker in range(3)] == [whole.files, (), ()]


@pytest.mark.parametrize("workers", [2, 5])
def test_no_part_of_a_file_that_holds_a_quote_is_read(tmp_path: Path, workers: int) -> None:
    plain = "".join(f"{row},10\n" for row in range(10_000))
    (tmp_path / "a.csv").write_text(plain + '1,"2\n3"\n' * 3000 + plain)
    whole = channel(tmp_path)
    shares = [split(whole, worker, workers) for worker in range(workers)]
    assert all(share[0].is_part for share in shares)
    refused: list[str] = []
    for share in shares:
        try:
            labels(whole, share)
        except UserError as error:
            refused += error.mistakes
    assert refused
    assert set(refused) == {
        (
            "train/a.csv is cut between workers, for there are fewer files than workers, and text in it is "
            "quoted, in which a line end can't be told from a record's end: give at least as many files as "
            "workers, use input mode File, or write the file without quotes."
        )
    }
