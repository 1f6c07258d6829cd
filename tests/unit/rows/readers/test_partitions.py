"""Folders named y=0 and the like: a column that files may hold too, or not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.recordio import framed, record, tensor

from smxgb.rows.reading import Partition

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data

REFUSED = (
    (
        "channel 'train' has folders named day=1 and the like, as a table partitioned by 'day' has: no file "
        "holds that column, and it is not read. Write the table unpartitioned, or leave the column out with "
        "drop_columns=day."
    ),
)
DAYS = (Partition("train", "day", "1", varies=True),)


def files(content: Any) -> dict[str, Any]:
    return {"day=1/a": content, "day=2/a": content}


LACKING = {
    "csv": "y,a\n1,2\n",
    "parquet": pa.table({"y": [1], "a": [2]}),
    "libsvm": "1 1:2\n",
    "recordio-protobuf": framed([record(tensor([2]), tensor([1]))]),
}
HOLDING = {"csv": "y,day,a\n1,7,2\n", "parquet": pa.table({"y": [1], "day": [7], "a": [2]})}


@pytest.mark.parametrize("content_type", LACKING)
def test_a_column_that_only_folders_hold_is_refused_unless_it_is_dropped(
    csv: Data, content_type: Any
) -> None:
    data = replace(csv, content_type=content_type)
    assert data.refused(files(LACKING[content_type]), partitions=DAYS) == REFUSED
    read = data.read(files(LACKING[content_type]), partitions=DAYS, drop=("day",))
    assert read.to_numpy().tolist() == [[2, 1]] * 2
    constant = (replace(DAYS[0], varies=False), replace(DAYS[0], channel="validation"))
    assert len(data.read(files(LACKING[content_type]), partitions=constant)) == 2


@pytest.mark.parametrize("content_type", HOLDING)
def test_a_column_that_files_hold_too_is_one_of_theirs(csv: Data, content_type: Any) -> None:
    data = replace(csv, content_type=content_type)
    read = data.read(files(HOLDING[content_type]), partitions=DAYS)
    assert list(read) == ["day", "a", "<label>"]
    read = data.read(files(HOLDING[content_type]), partitions=DAYS, drop=("day",))
    assert list(read) == ["a", "<label>"]


def test_a_validation_channel_is_held_to_its_own_folders(csv: Data) -> None:
    like = csv.declared(LACKING["csv"])
    both = (*DAYS, replace(DAYS[0], channel="validation"))
    said = csv.refused(LACKING["csv"], like=like, name="validation", partitions=both)
    assert said[0].startswith("channel 'validation' has folders named day=1 and the like")
