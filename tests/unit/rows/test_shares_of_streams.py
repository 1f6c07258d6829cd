"""What several workers may share, and what not: pipes and compressed files."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from smxgb.errors import UserError
from smxgb.job import Channel, DataFile
from smxgb.rows.shares import share, split
from smxgb.rows.worker_group import Solo

if TYPE_CHECKING:
    from pathlib import Path


class Two(Solo):
    """A group of which only the size matters."""

    size = 2


def pipe(tmp_path: Path) -> Channel:
    fifo = DataFile(tmp_path / "train_0", 0)
    return Channel("train", tmp_path / "train", "csv", "Pipe", "FullyReplicated", (fifo,))


def test_a_pipe_that_brings_all_hosts_the_same_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="each of the 2 workers would train on all rows of its pipe"):
        share(pipe(tmp_path), Two("algo-1"), whole=False)


def test_a_pipe_with_a_shard_is_read_by_its_host(tmp_path: Path) -> None:
    channel = replace(pipe(tmp_path), distribution="ShardedByS3Key")
    assert share(channel, Two("algo-1"), whole=False).channel == channel


@pytest.mark.parametrize(("pack", "parts"), [(bytes, 2), (gzip.compress, 1)])
def test_a_compressed_file_is_not_cut(tmp_path: Path, pack: type[bytes], parts: int) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(pack(b"1,2\n" * 5000))
    files = (DataFile(path, path.stat().st_size),)
    channel = Channel("train", tmp_path, "csv", "File", "FullyReplicated", files)
    assert sum(bool(split(channel, index, 2)) for index in range(2)) == parts
