"""The store: rows that can be read again and again, and their summary."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from smxgb.errors import PlatformError, UserError
from smxgb.job import Channel, DataFile
from smxgb.rows import spool
from smxgb.rows.batch import ROWS, Dense
from smxgb.rows.readers import open_reader
from smxgb.rows.reading import ReadingSettings
from smxgb.rows.store import Stored, keep, with_progress
from smxgb.rows.summary import Summary
from smxgb.settings.label_domains import Labels

if TYPE_CHECKING:
    from smxgb.job.channels import InputMode
    from smxgb.job.content_types import ContentType
    from smxgb.rows.roles import RoleName

ROLES_OF: dict[RoleName, str] = {"label": "y", "weight": "w", "group": "g"}
SIDES: list[tuple[ContentType, InputMode]] = [("csv", "File"), ("parquet", "File"), ("parquet", "FastFile")]


def columns(rows: int) -> dict[str, Any]:
    generator = np.random.default_rng(11)
    feature = generator.random(rows)
    feature[::7] = np.nan
    return {
        "y": generator.integers(0, 3, rows),
        "w": np.repeat(generator.integers(1, 5, rows // 10 + 1), 10)[:rows],
        "g": np.arange(rows) // 10,
        "a": feature,
    }


def kept(
    folder: Path, table: pa.Table, content_type: ContentType, mode: InputMode, **settings: Any
) -> Stored:
    (folder / "train").mkdir()
    (folder / "spool").mkdir()
    path = folder / "train" / "data"
    if content_type == "csv":
        table.to_pandas().to_csv(path, index=False)
    else:
        pq.write_table(table, path)
    files = (DataFile(path, path.stat().st_size),)
    channel = Channel("train", folder / "train", content_type, mode, "FullyReplicated", files)
    reader = open_reader(channel, ReadingSettings(**settings), threads=2, like=None)
    return keep(reader, folder / "spool", "train")


@pytest.mark.parametrize(("content_type", "mode"), SIDES)
def test_every_pass_reads_the_same_rows(tmp_path: Path, content_type: ContentType, mode: InputMode) -> None:
    rows = ROWS + 100
    table = columns(rows)
    stored = kept(tmp_path, pa.table(table), content_type, mode, columns={"weight": "w", "group": "g"})
    for _ in range(3):
        batches = list(stored.batches())
        assert sum(batch.rows for batch in batches) == rows
        assert all(batch.features.column_names == ["a"] for batch in batches)
        for role, name in ROLES_OF.items():
            assert np.array_equal(np.concatenate([batch.roles[role] for batch in batches]), table[name])
        feature = pa.concat_tables([batch.features for batch in batches])["a"].to_numpy()
        assert np.array_equal(feature, table["a"].astype(np.float32), equal_nan=True)


@pytest.mark.parametrize(("content_type", "mode"), SIDES)
def test_the_summary_says_what_was_read(tmp_path: Path, content_type: ContentType, mode: InputMode) -> None:
    table = columns(1000)
    stored = kept(tmp_path, pa.table(table), content_type, mode, columns={"weight": "w"}, drop=("g",))
    assert stored.rows == 1000
    assert stored.summary.label == Labels(0, 2, whole=True, different=(0, 1, 2))
    assert stored.summary.weights == table["w"].sum()
    assert (stored.summary.present is None) == ((content_type, mode) == ("parquet", "File"))


def test_only_what_is_dear_to_read_again_is_spooled(tmp_path: Path) -> None:
    for number, (content_type, mode) in enumerate(SIDES):
        folder = tmp_path / str(number)
        folder.mkdir()
        kept(folder, pa.table(columns(10)), content_type, mode)
        assert (folder / "spool" / "train").exists() is ((content_type, mode) != ("parquet", "File"))


@pytest.mark.parametrize(("content_type", "mode"), SIDES)
def test_rows_that_are_dropped_are_counted_once(
    tmp_path: Path, content_type: ContentType, mode: InputMode
) -> None:
    table = pa.table({"y": [1.0, None, 0, None], "a": [1, 2, 3, 4]})
    stored = kept(tmp_path, table, content_type, mode, invalid_label="drop")
    assert (stored.rows, stored.summary.dropped) == (2, 2)
    assert [batch.features["a"].to_pylist() for batch in stored.batches()] == [[1, 3]]


def test_a_channel_without_valid_labels_has_no_rows(tmp_path: Path) -> None:
    stored = kept(tmp_path, pa.table({"y": [None, None], "a": [1, 2]}), "csv", "File", invalid_label="drop")
    assert stored.summary == Summary(rows=0, dropped=2, columns=1, roles=frozenset({"label"}))
    assert list(stored.batches()) == []


def test_a_bad_label_is_found_in_the_first_pass(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the label is empty"):
        kept(tmp_path, pa.table({"y": [None, 1.0], "a": [1, 2]}), "parquet", "File")


def leave(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the volume say that so many bytes are free."""
    usage = SimpleNamespace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)


def whole_numbers(rows: int) -> dict[str, Any]:
    generator = np.random.default_rng(7)
    cells = {f"f{number}": generator.integers(0, 50, rows) for number in range(20)}
    return {"y": generator.integers(0, 2, rows), "g": generator.integers(0, 90, rows), **cells}


@pytest.mark.parametrize("role", ["weight", "group"])
def test_rows_are_packed_where_the_volume_is_tight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], role: RoleName
) -> None:
    rows, table = 20_000, whole_numbers(20_000)
    size = 4 * rows * len(table)
    leave(size, monkeypatch)
    stored = kept(tmp_path, pa.table(table), "csv", "File", columns={role: "g"})
    assert "The rows of train are packed: they would take about 1." in capsys.readouterr().out
    assert (tmp_path / "spool" / "train").stat().st_size < size / 2
    order = np.argsort(table["g"], kind="stable") if role == "group" else np.arange(rows)
    for _ in range(2):
        features = pa.concat_tables([batch.features for batch in stored.batches()])
        assert all(
            features[name].to_numpy().tolist() == table[name][order].tolist() for name in ("f0", "f19")
        )


def test_packed_rows_that_do_not_fit_into_memory_are_not_sorted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = whole_numbers(20_000)
    leave(4 * 20_000 * len(table), monkeypatch)
    monkeypatch.setattr(spool, "memory_available", lambda: 1 << 20)
    with pytest.raises(PlatformError, match="sort the files by group, or give the job a larger volume"):
        kept(tmp_path, pa.table(table), "csv", "File", columns={"group": "g"})


def test_a_volume_that_is_too_small_for_packed_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(1000, monkeypatch)
    with pytest.raises(PlatformError) as caught:
        kept(tmp_path, pa.table(columns(10_000)), "csv", "File")
    assert caught.value.mistakes[0].endswith(
        f" in {tmp_path}/spool, where 1.0 KiB are free: give the job a larger volume (volume_size), or set "
        "spool_dir."
    )
    assert not (tmp_path / "spool" / "train").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_disk_that_fills_up_is_the_platforms_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = pa.OSFile
    monkeypatch.setattr(pa, "OSFile", lambda path, mode: opened("/dev/full" if mode == "wb" else path, mode))
    with pytest.raises(PlatformError, match="give the job a larger volume") as caught:
        kept(tmp_path, pa.table(columns(10_000)), "csv", "File")
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC


def batch(rows: int) -> Dense:
    return Dense(pa.table({"a": pa.nulls(rows, pa.float32())}), {"label": np.zeros(rows, np.float32)})


def test_a_long_reading_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(list(with_progress(iter([batch(2), batch(1)]), "train", every=0))) == 2
    assert capsys.readouterr().out == "Channel train: 2 rows read.\nChannel train: 3 rows read.\n"


def test_a_short_reading_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(list(with_progress(iter([batch(2)]), "train"))) == 1
    assert not capsys.readouterr().out
