"""Channels written into a temporary folder, and read back as pandas tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from smxgb.errors import UserError
from smxgb.job import Channel, DataFile
from smxgb.rows.batch import Sparse
from smxgb.rows.readers import Reader, open_reader
from smxgb.rows.reading import ReadingSettings
from smxgb.rows.roles import ROLES

if TYPE_CHECKING:
    from pathlib import Path

    from smxgb.job.channels import InputMode, Name
    from smxgb.job.content_types import ContentType
    from smxgb.rows.batch import Batch
    from smxgb.rows.schema import Declared


def as_frame(batches: list[Batch]) -> pd.DataFrame:
    """Return batches as one table: the features by name, then the roles in brackets."""
    frames = []
    for batch in batches:
        frame = as_dense(batch) if isinstance(batch, Sparse) else batch.features.to_pandas()
        numbers = frame.select_dtypes("number").columns
        frame[numbers] = frame[numbers].astype(np.float32)
        for role in ROLES:
            if role in batch.roles:
                assert len(batch.roles[role]) == batch.rows
                frame[f"<{role}>"] = batch.roles[role]
        frames.append(frame)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def as_dense(batch: Sparse) -> pd.DataFrame:
    """Return sparse features as a table with a column for each index that occurs, missing where absent."""
    rows = np.repeat(np.arange(batch.rows), np.diff(batch.offsets))
    columns, places = np.unique(batch.indices, return_inverse=True)
    cells = np.full((batch.rows, len(columns)), np.nan, np.float32)
    cells[rows, places] = pc.list_flatten(batch.features["values"])
    return pd.DataFrame(cells, columns=columns)


@dataclass
class Data:
    """Writes the files of a channel and reads them."""

    folder: Path
    content_type: ContentType = "csv"
    mode: InputMode = "File"
    threads: int = 2

    def channel(self, files: dict[str, Any], name: Name = "train") -> Channel:
        """Write files given as text, bytes or tables."""
        paths = []
        for file, content in files.items():
            path = self.folder / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, pa.Table):
                pq.write_table(content, path)
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
            paths.append(path)
        found = tuple(DataFile(path, path.stat().st_size) for path in sorted(paths))
        return Channel(name, self.folder / name, self.content_type, self.mode, "FullyReplicated", found)

    def declared(self, files: Any, **settings: Any) -> Declared:
        """Return what the files of `train` declare."""
        declared: Declared = self.reader(files, **settings).declared
        return declared

    def read(
        self, files: Any, *, like: Declared | None = None, name: Name = "train", **settings: Any
    ) -> pd.DataFrame:
        """Return a channel's rows."""
        reader = self.reader(files, like=like, name=name, **settings)
        return as_frame(list(reader.batches()))

    def refused(self, files: Any, **settings: Any) -> tuple[str, ...]:
        """Return the mistakes that reading the channel reports."""
        with pytest.raises(UserError) as caught:
            self.read(files, **settings)
        return caught.value.mistakes

    def reader(
        self, files: Any, *, like: Declared | None = None, name: Name = "train", **settings: Any
    ) -> Reader:
        """Return the reader of a channel; roles among the settings name their columns."""
        if not isinstance(files, dict):
            files = {f"a.{self.content_type}": files}
        columns = {role: settings.pop(role) for role in ROLES if role in settings}
        reading = ReadingSettings(columns, **settings)
        return open_reader(self.channel(files, name), reading, threads=self.threads, like=like)


@pytest.fixture
def csv(tmp_path: Path) -> Data:
    return Data(tmp_path)


@pytest.fixture
def libsvm(tmp_path: Path) -> Data:
    return Data(tmp_path, "libsvm")


@pytest.fixture
def recordio(tmp_path: Path) -> Data:
    return Data(tmp_path, "recordio-protobuf")


@pytest.fixture(params=["File", "FastFile"])
def parquet(tmp_path: Path, request: pytest.FixtureRequest) -> Data:
    return replace(Data(tmp_path, "parquet"), mode=request.param)
