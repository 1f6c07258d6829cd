from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.threads import by_all

from smxgb.errors import UserError
from smxgb.job import Channel, DataFile
from smxgb.rows.readers import open_reader
from smxgb.rows.readers.csv.blocks import read_part
from smxgb.rows.reading import ReadingSettings
from smxgb.rows.shares import Share, share, split

if TYPE_CHECKING:
    from smxgb.rows.worker_group import Group


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
        whole = DataFile(path, len(content))
        parts = [
            b"".join(block.data for block in read_part(whole.cut(begin, end), "a", ",", size, 0))
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
    parts = [split(whole, worker, workers) for worker in range(workers)]
    assert sorted(file.path for part in parts for file in part) == sorted(file.path for file in whole.files)
    loads = [sum(file.size for file in part) for part in parts]
    assert max(loads) - min(loads) <= max(sizes)
    assert all(list(part) == sorted(part, key=whole.files.index) for part in parts)


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
    parts = [split(whole, worker, workers) for worker in range(workers)]
    assert all(part[0].is_part for part in parts)
    refused: list[str] = []
    for part in parts:
        try:
            labels(whole, part)
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


def shared(base: Path, *hosts: dict[str, bytes], stated: bool = False) -> list[Share | tuple[str, ...]]:
    """Return what workers on hosts with these files read of them."""
    for number, files in enumerate(hosts):
        folder = base / f"{number}"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)

    def work(group: Group) -> Share:
        return share(replace(channel(base / f"{group.rank}"), is_stated=stated), group, whole=False)

    return by_all(work, [f"algo-{number}" for number in range(1, len(hosts) + 1)])


def test_files_of_equal_names_and_sizes_with_other_bytes_are_read_by_each_host(tmp_path: Path) -> None:
    notes = [own.note for own in shared(tmp_path, {"a.csv": b"1,1\n"}, {"a.csv": b"1,2\n"})]  # type: ignore[union-attr]
    assert (
        notes
        == ["Channel train: this worker reads 1 of 1 files, 4 bytes; no other worker holds the same files."]
        * 2
    )


def test_a_file_in_which_quotes_come_late_is_read_whole_by_one_worker(tmp_path: Path) -> None:
    text = b"1,2\n" * 50_000 + b'1,"two\nlines"\n'
    read = shared(tmp_path, *[{"a.csv": text}] * 3)
    assert [[file.is_part for file in own.channel.files] for own in read] == [[False], [], []]  # type: ignore[union-attr]
    assert "none is cut, for text in them is quoted" in read[1].note  # type: ignore[union-attr]


SAME = {"a.csv": b"1,1\n0,2\n", "b.csv": b"1,1\n0,2\n"}


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"a.csv": b"1,1\n0,2\n"}, "b.csv has 8 bytes on algo-1 and is missing on algo-2"),
        ({**SAME, "b.csv": b"0,2\n"}, "b.csv has 8 bytes on algo-1 and has 4 bytes on algo-2"),
        (
            {**SAME, "b.csv": b"1,1\n0,3\n"},
            "files of the same names and sizes hold other bytes on algo-1 than on algo-2",
        ),
        ({**SAME, os.fsdecode(b"\xe9"): b"0,2\n"}, r"\udce9 is missing on algo-1 and has 4 bytes on algo-2"),
    ],
)
def test_hosts_that_are_said_to_hold_the_same_files_must_do_so(
    tmp_path: Path, other: dict[str, bytes], named: str
) -> None:
    refused = (
        f"channel train is FullyReplicated, but its hosts hold different files: {named}. Set "
        "S3DistributionType=ShardedByS3Key if each host has its own files, or give all hosts the same."
    )
    assert shared(tmp_path, SAME, other, stated=True) == [(refused,)] * 2
