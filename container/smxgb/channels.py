"""Input channels: which there are, how their data comes, and which files hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

type ContentType = Literal["csv", "parquet", "libsvm", "recordio-protobuf"]
type InputMode = Literal["File", "FastFile", "Pipe"]
type Distribution = Literal["FullyReplicated", "ShardedByS3Key"]


@dataclass(frozen=True)
class DataFile:
    """One file of a channel; `size` in bytes."""

    path: Path
    size: int


@dataclass(frozen=True)
class Channel:
    """One channel with its non-empty data files, sorted by path below `folder`."""

    name: Literal["train", "validation"]
    folder: Path
    content_type: ContentType
    mode: InputMode
    distribution: Distribution
    files: tuple[DataFile, ...]
