"""The bytes below the readers: compressed, opened ahead, through pipes; each byte once and in order."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from tests.recordio import framed, record, tensor
from tests.unit.rows.conftest import Data, as_frame

from smxgb.errors import PlatformError, UserError
from smxgb.job.channels import Channel
from smxgb.job.data_files import DataFile, ListedFile
from smxgb.rows.readers import open_reader, pipe, streams
from smxgb.rows.readers.streams import open_streams
from smxgb.rows.reading import ReadingSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pandas as pd

    from smxgb.job.content_types import ContentType

ROWS = 3000


def csv_bytes(first: int = 0, last: int = ROWS) -> bytes:
    return b"".join(b"%d,%d.5,%d\n" % (row % 3, row, -row) for row in range(first, last))


def libsvm_bytes(first: int = 0, last: int = ROWS) -> bytes:
    return b"".join(b"%d 0:%d.5 1:%d\n" % (row % 3, row, -row) for row in range(first, last))


def recordio_bytes(first: int = 0, last: int = ROWS) -> bytes:
    return framed(record(tensor([row + 0.5, -row]), tensor([row % 3])) for row in range(first, last))


WRITERS: dict[ContentType, Callable[..., bytes]] = {
    "csv": csv_bytes,
    "libsvm": libsvm_bytes,
    "recordio-protobuf": recordio_bytes,
}


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def zstd_behind_a_skippable_frame(data: bytes) -> bytes:
    return struct.pack("<II", 0x184D2A53, 5) + b"hello" + zstd(data)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "zstd": zstd,
    "zstd, skippable": zstd_behind_a_skippable_frame,
}


def lz4(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


FOREIGN: dict[str, Callable[[bytes], bytes]] = {
    "xz": lzma.compress,
    "lz4": lz4,
    "7-Zip": lambda data: b"7z\xbc\xaf\x27\x1c\0\x04" + data,
    "compress": lambda data: b"\x1f\x9d\x90" + data,
}


@pytest.fixture(params=WRITERS)
def data(tmp_path: Path, request: pytest.FixtureRequest) -> Data:
    return Data(tmp_path, request.param)


@pytest.mark.parametrize("packer", PACKERS)
def test_compressed_files_are_told_by_their_first_bytes(data: Data, packer: str) -> None:
    write, pack = WRITERS[data.content_type], PACKERS[packer]
    plain = data.read({"1": write(0, 2000), "2": write(2000)})
    assert len(plain) == ROWS
    assert_frame_equal(data.read({"1": pack(write(0, 2000)), "2": write(2000)}), plain)


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("empty", [0, 1])
def test_a_compressed_file_may_have_several_members(data: Data, packer: str, empty: int) -> None:
    write, pack = WRITERS[data.content_type], PACKERS[packer]
    members = pack(write(0, 10)) + pack(b"") * empty + pack(write(10, 2000)) + pack(write(2000))
    assert_frame_equal(data.read({"1": members}), data.read({"2": write()}))


@pytest.mark.parametrize("packer", PACKERS)
def test_the_rows_of_a_compressed_file_are_judged_by_what_comes_of_it(data: Data, packer: str) -> None:
    rows = 50_000
    packed = PACKERS[packer](WRITERS[data.content_type](0, rows))
    reader = data.reader({"a": packed})
    assert reader.expected_rows == pytest.approx(rows, rel=0.5)


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("kept", [0.5, 0.999])
def test_a_compressed_file_that_is_cut_off_is_refused(csv: Data, packer: str, kept: float) -> None:
    packed = PACKERS[packer](csv_bytes())
    assert csv.refused({"a.csv": packed[: int(len(packed) * kept)]}) == (
        "train/a.csv can't be decompressed: it is damaged or cut off. Write or upload it again.",
    )


def with_third_byte_changed(packed: bytes) -> bytes:
    return packed[:2] + bytes([packed[2] ^ 0xFF]) + packed[3:]


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize(
    "member", [with_third_byte_changed, lambda packed: packed[:2], lambda packed: packed[9:]]
)
def test_what_follows_a_compressed_member_must_be_a_whole_one(
    data: Data, packer: str, member: Callable[[bytes], bytes]
) -> None:
    write, pack = WRITERS[data.content_type], PACKERS[packer]
    for rest in (member(pack(write(10, 2000))), b"\n", b"0,1,2\n" * 1000):
        assert data.refused({"a": pack(write(0, 10)) + rest}) == (
            "train/a can't be decompressed: it is damaged or cut off. Write or upload it again.",
        )


@pytest.mark.parametrize("name", FOREIGN)
def test_another_compression_is_named_with_those_that_are_read(data: Data, name: str) -> None:
    packed = FOREIGN[name](WRITERS[data.content_type]())
    (mistake,) = data.refused({"a": packed})
    assert mistake == (
        f"train/a is compressed with {name}, which is not read: compress it with gzip, bzip2 or zstd, or not "
        "at all."
    )
    assert data.refused({"a": gzip.compress(packed)}) == (mistake,)


@pytest.mark.parametrize("packer", PACKERS)
def test_a_file_that_is_compressed_twice_is_refused(data: Data, packer: str) -> None:
    packed = gzip.compress(PACKERS[packer](WRITERS[data.content_type]()))
    assert data.refused({"a": packed}) == ("train/a is compressed twice: compress it once.",)


def test_a_parquet_file_is_not_compressed_as_a_whole(parquet: Data) -> None:
    assert parquet.refused({"a": gzip.compress(b"PAR1")}) == (
        (
            "train/a is compressed as a whole, which a Parquet file must not be: decompress it, and let what "
            "writes it compress its columns."
        ),
    )


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(packer=st.sampled_from(list(PACKERS)), place=st.integers(3, 2000), byte=st.integers(0, 255))
def test_a_damaged_compressed_file_is_read_or_refused(csv: Data, packer: str, place: int, byte: int) -> None:
    packed = bytearray(PACKERS[packer](csv_bytes()))
    packed[place % len(packed)] = byte
    with suppress(UserError):
        csv.read({"a.csv": bytes(packed)})


def test_the_line_of_a_mistake_in_a_compressed_file_is_right(csv: Data) -> None:
    packed = gzip.compress(csv_bytes() * 100 + b"1,x,2\n")
    assert csv.refused({"a.csv": packed})[0].startswith(f"train/a.csv, line {ROWS * 100 + 1}, column 1: 'x'")


class Piped:
    """Feeds the FIFO of a channel from a thread and reads it."""

    def __init__(self, folder: Path, content_type: ContentType) -> None:
        folder.mkdir(exist_ok=True)
        self.fifo = folder / "train_0"
        self.channel = Channel("train", folder / "train", content_type, "Pipe", "FullyReplicated", ())

    def read(self, content: bytes | None, *, wrapped: bool = False) -> pd.DataFrame:
        """Read what is written; without content nobody opens the FIFO."""
        os.mkfifo(self.fifo)
        writer = threading.Thread(target=self._write, args=(content,))
        writer.start()
        channel = replace(self.channel, files=(DataFile(self.fifo, 0),), wrapped=wrapped)
        try:
            reader = open_reader(channel, ReadingSettings(), threads=2, like=None)
            return as_frame(list(reader.batches()))
        finally:
            writer.join()

    def _write(self, content: bytes | None) -> None:
        if content is not None:
            with suppress(BrokenPipeError), self.fifo.open("wb", buffering=0) as stream:
                for start in range(0, len(content) or 1, 7000):
                    stream.write(content[start : start + 7000])


@pytest.mark.parametrize("packer", [None, *PACKERS])
def test_a_pipe_is_read_as_a_file(data: Data, tmp_path: Path, packer: str | None) -> None:
    content = WRITERS[data.content_type]()
    sent = PACKERS[packer](content) if packer else content
    assert_frame_equal(Piped(tmp_path, data.content_type).read(sent), data.read({"a": content}))


@pytest.mark.parametrize("content_type", ["csv", "libsvm"])
@pytest.mark.parametrize("size", [30, 1 << 20, (1 << 20) + 30])
def test_a_pipe_that_ends_within_a_line_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content_type: ContentType, size: int
) -> None:
    row = b"1,2\n" if content_type == "csv" else b"1 0:2\n"
    whole = row * (size // len(row))
    said = "pipe train_0 ended without a line end: its last record may be cut off."
    Piped(tmp_path / "whole", content_type).read(whole)
    Piped(tmp_path / "packed", content_type).read(gzip.compress(whole[:-1]))
    Piped(tmp_path / "wrapped", content_type).read(framed([whole[:-1]]), wrapped=True)
    assert said not in capsys.readouterr().out
    Piped(tmp_path / "cut", content_type).read(whole[:-1])
    assert capsys.readouterr().out.count(said) == 1


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_files_that_a_pipe_wraps_are_files(csv: Data, tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    files = {"1": b"y,a,b\n" + csv_bytes(0, 50), "2": b"b,y,a\n7,1,6\n", "3": b"y,a,b\n" + csv_bytes(50)}
    sent = framed((pack(content) for content in files.values()), part_bytes=1000)
    assert_frame_equal(Piped(tmp_path, "csv").read(sent, wrapped=True), csv.read(files))


def test_a_mistake_in_a_wrapped_file_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"pipe train_0, file 2, line 1, column 1: 'x' is not a number"):
        Piped(tmp_path, "csv").read(framed([b"1,2\n", b"1,x\n"]), wrapped=True)


def test_a_wrapped_file_that_ends_early_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"pipe train_0, record 2: the file ends inside it"):
        Piped(tmp_path, "csv").read(framed([b"1,2\n", b"1,3\n" * 9])[:-8], wrapped=True)


def test_a_pipe_that_nobody_opens_is_an_error_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe, "SILENCE", 0.3)
    with pytest.raises(PlatformError, match=r"train_0 has not begun: nothing came for 0 seconds"):
        Piped(tmp_path, "csv").read(None)


def test_a_pipe_that_is_not_there_is_an_error_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe, "SILENCE", 0.3)
    channel = replace(Piped(tmp_path, "csv").channel, files=(DataFile(tmp_path / "train_0", 0),))
    with pytest.raises(PlatformError, match=r"train_0 was not there after 0 seconds"):
        open_reader(channel, ReadingSettings(), threads=2, like=None)


def test_a_pipe_that_stops_is_an_error_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "SILENCE", 0.3)
    piped = Piped(tmp_path, "csv")
    os.mkfifo(piped.fifo)
    channel = replace(piped.channel, files=(DataFile(piped.fifo, 0),))
    with piped.fifo.open("r+b", buffering=0) as stream:  # this end stays open, and sends no more
        stream.write(b"1,2\n")
        with pytest.raises(PlatformError, match=r"train_0 stopped: nothing came for 0 seconds"):
            open_reader(channel, ReadingSettings(), threads=2, like=None)


def test_a_pipe_without_a_byte_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"train_0 ended before its first byte: check the channel's S3 address"
    ):
        Piped(tmp_path, "csv").read(b"")


def test_files_are_opened_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = []
    for number in range(9):
        (tmp_path / f"{number}").write_bytes(b"%d" % number)
        files.append(DataFile(tmp_path / f"{number}", 1))
    opened: list[str] = []

    def noted(file: DataFile) -> ListedFile:
        opened.append(file.path.name)
        return ListedFile(file)

    monkeypatch.setattr(streams, "ListedFile", noted)
    channel = Channel("train", tmp_path, "csv", "FastFile", "FullyReplicated", tuple(files))
    files_read = open_streams(channel)
    assert next(files_read).read(9) == b"0"
    assert len(opened) > 1
    assert [stream.read(9) for stream in files_read] == [b"%d" % number for number in range(1, 9)]


READ = """
import sys
from pathlib import Path
from smxgb.job.channels import Channel
from smxgb.job.data_files import find_files
from smxgb.rows.reading import ReadingSettings
from smxgb.rows.readers import open_reader
from smxgb.rows.store import keep
content_type, folder, spool = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
channel = Channel("train", folder, content_type, "FastFile", "FullyReplicated", find_files(folder)[0])
reader = open_reader(channel, ReadingSettings(), threads=2, like=None)
print(sum(batch.rows for batch in keep(reader, spool, "train").batches()))
"""


def reads(folder: Path, content_type: str, spool: Path) -> Iterator[tuple[str, int, int]]:
    """Yield each read of a channel's file as the kernel sees it: the file, the offset and the bytes."""
    watched = "trace=read,pread64,lseek,mmap,readv,preadv"
    strace = ["strace", "-ff", "-ttt", "-y", "-e", watched, "-o", str(spool / "trace")]
    python = [sys.executable, "-c", READ, content_type, str(folder), str(spool)]
    subprocess.run([*strace, *python], check=True, capture_output=True)
    lines = [line for trace in spool.glob("trace.*") for line in trace.read_text().splitlines()]
    places: dict[str, int] = {}
    for line in sorted(lines):  # each begins with its time, whatever its thread
        call = re.search(rf"(\w+)\((\d+)<({re.escape(str(folder))}/[^>]+)>(.*?)\) += (\d+)", line)
        if call is None:
            continue
        name, _, file, arguments, result = call.groups()
        assert name in {"read", "pread64", "lseek"}, line
        if name == "lseek":
            places[file] = int(result)
            continue
        offset = int(arguments.rpartition(", ")[2]) if name == "pread64" else places.get(file, 0)
        if int(result):
            yield file, offset, int(result)
        if name == "read":
            places[file] = offset + int(result)


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("packer", [None, "gzip"])
def test_every_byte_of_a_streamed_file_is_read_once_and_in_order(
    data: Data, tmp_path: Path, packer: str | None
) -> None:
    content = WRITERS[data.content_type]() * 40
    files = {"1": content, "2": WRITERS[data.content_type](0, 50), "3": b"", "4": content}
    pack: Callable[[bytes], bytes] = PACKERS[packer] if packer else bytes
    data.channel({name: pack(text) if text else text for name, text in files.items()})
    spool = tmp_path / "spool"
    spool.mkdir()
    ends: dict[str, int] = {}
    for file, offset, size in reads(tmp_path / "train", data.content_type, spool):
        assert offset == ends.get(file, 0)
        ends[file] = offset + size
    sizes = {str(path): path.stat().st_size for path in (tmp_path / "train").iterdir()}
    assert ends == {path: size for path, size in sizes.items() if size}


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_of_a_streamed_parquet_file_the_footer_and_the_columns_are_read_and_no_more(tmp_path: Path) -> None:
    numbers = np.random.default_rng(3).random((4, 200_000))
    table = pa.table(dict(zip("yabi", numbers, strict=True)))
    # What pandas saved as its index is left out, and so is not read.
    table = table.rename_columns(["y", "a", "b", "__index_level_0__"]).replace_schema_metadata(
        {"pandas": '{"index_columns": ["__index_level_0__"]}'}
    )
    for folder in ("train", "spool"):
        (tmp_path / folder).mkdir()
    path = tmp_path / "train" / "a.parquet"
    pq.write_table(table, path, row_group_size=50_000)
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    needed = sum(group.column(column).total_compressed_size for group in groups for column in range(3))
    found = [(offset, size) for _, offset, size in reads(tmp_path / "train", "parquet", tmp_path / "spool")]
    footer = 2 * (metadata.serialized_size + 65_536)  # the schema is looked at before the rows
    assert needed <= sum(size for _, size in found) <= needed + footer
    columns = [offset for offset, size in found if offset + size < path.stat().st_size - 65_536]
    assert columns == sorted(columns)
