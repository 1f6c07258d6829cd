"""Bad channels: what SageMaker shows as the reason of the failure. One of each kind is a whole job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.mistakes import COLUMNS, ROWS, Mistake, assert_fails, table
from tests.opt_ml import Source

if TYPE_CHECKING:
    from pathlib import Path


def typed(content_type: str | None, **settings: object) -> Source:
    return Source({"data.csv": ROWS}, content_type, settings)


def _write(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(ROWS)


TABLE = {
    "no channel": Mistake(
        "UserError: there is no input channel: /opt/ml/input/data holds no folder, and "
        "inputdataconfig.json names none. Give the job a channel named 'train'.",
        train=None,
        whole=True,
    ),
    "a file beside the channels' folders": Mistake(
        "UserError: there is no input channel: /opt/ml/input/data holds 'rows.csv' and no folder. A channel "
        "is a folder of files: move it to /opt/ml/input/data/train.",
        train=None,
        spoil=lambda base: _write(base / "input/data/rows.csv"),
    ),
    "a channel of another name": Mistake(
        "UserError: there is no channel 'train', only 'trian': rename 'trian' to 'train'.",
        train=None,
        others={"trian": ROWS},
    ),
    "only a test channel": Mistake(
        "UserError: there is no channel 'train', only 'test': name the channel with the training "
        "data 'train'.",
        train=None,
        others={"test": ROWS},
    ),
    "the same channel twice": Mistake(
        "UserError: channels 'train' and 'training' mean the same: keep one of them.",
        others={"training": ROWS},
    ),
    "a content type that is none": Mistake(
        "UserError: channel 'train': content type 'text/cvs' is not one of text/csv, csv, "
        "text/libsvm, text/x-libsvm, libsvm, application/x-parquet, parquet, "
        "application/x-recordio-protobuf, recordio-protobuf. Did you mean 'text/csv'?",
        train=typed("text/cvs"),
        whole=True,
    ),
    "a content type that resembles none": Mistake(
        "UserError: channel 'train': content type 'application/json' is not one of text/csv, csv, "
        "text/libsvm, text/x-libsvm, libsvm, application/x-parquet, parquet, "
        "application/x-recordio-protobuf, recordio-protobuf.",
        train=typed("application/json"),
    ),
    "a content type with another kind": Mistake(
        "UserError: channel 'train': content type 'application/csv' is not one of text/csv, csv, "
        "text/libsvm, text/x-libsvm, libsvm, application/x-parquet, parquet, "
        "application/x-recordio-protobuf, recordio-protobuf. Did you mean 'text/csv'?",
        train=typed("application/csv"),
    ),
    "more than one label": Mistake(
        "UserError: channel 'train': content type 'text/csv; label_size=2': label_size must be 1, "
        "since a row has one label.",
        train=typed("text/csv; label_size=2"),
    ),
    "text in another encoding": Mistake(
        "UserError: channel 'train': content type 'text/csv; charset=utf-16': text is read as UTF-8: "
        "write the files so, and leave charset out.",
        train=typed("text/csv; charset=utf-16"),
    ),
    "an input mode that is none": Mistake(
        "UserError: channel 'train': TrainingInputMode='Fast' is not one of File, FastFile, Pipe.",
        train=typed("text/csv", TrainingInputMode="Fast"),
    ),
    "wrapped records": Mistake(
        "UserError: channel 'train': RecordWrapperType='RecordIO' can't be: only Pipe mode wraps "
        "files, and the channel's is File.",
        train=typed("text/csv", RecordWrapperType="RecordIO"),
    ),
    "a channel that is a text": Mistake(
        "UserError: inputdataconfig.json: channel 'train' is \"text/csv\": it must be an object, as "
        '{"ContentType": "text/csv"}, or {}.',
        inputdataconfig={"train": "text/csv"},
    ),
    "a channel without a folder": Mistake(
        "UserError: channel 'validation': its folder /opt/ml/input/data/validation does not exist: "
        "check the channel's S3 address, or, in plain Docker, what is mounted at /opt/ml.",
        inputdataconfig={"train": {}, "validation": {}},
        whole=True,
    ),
    "nothing but markers": Mistake(
        "UserError: channel 'train' holds no data file, only .x.crc, _SUCCESS (empty), a.csv (empty): "
        "check the channel's S3 address and that its files have rows.",
        train=Source({"_SUCCESS": b"", ".x.crc": b"1", "a.csv": b""}, "text/csv"),
        whole=True,
    ),
    "a column that only folders hold": Mistake(
        "UserError: channel 'train' has folders named y=0 and the like, as a table partitioned by 'y' has: "
        "no file holds that column, and it is not read. Write the table unpartitioned, or leave the column "
        "out with drop_columns=y.",
        train=Source(dict.fromkeys(("y=0/a.parquet", "y=1/a.parquet"), table(COLUMNS)), None),
    ),
    "two types in one channel": Mistake(
        "UserError: channel 'train' holds csv (a.csv) and parquet (b.parquet): a channel's files "
        "must all be of one type.",
        train=Source({"a.csv": ROWS, "b.parquet": table(COLUMNS)}, None),
    ),
    "two bad channels": Mistake(
        "UserError: 2 mistakes. 1. channel 'train': content type 'cvs' is not one of text/csv, csv,"
        " text/libsvm, text/x-libsvm, libsvm, application/x-parquet, parquet, "
        "application/x-recordio-protobuf, recordio-protobuf. Did you mean 'csv'?",
        train=typed("cvs"),
        validation=typed("parquet", TrainingInputMode="Pipe"),
        whole=True,
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_bad_channel_ends_the_job_with_one_plain_sentence(name: str, tmp_path: Path) -> None:
    assert_fails(TABLE[name], tmp_path)
