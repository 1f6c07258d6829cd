from __future__ import annotations

from typing import TYPE_CHECKING

from smxgb.job.channels import find_channels
from smxgb.rows.reading import Partition, reading_settings
from smxgb.settings import parse

if TYPE_CHECKING:
    from pathlib import Path


def test_settings_and_folders_names_tell_how_rows_are_read(tmp_path: Path) -> None:
    for value in "01":
        file = tmp_path / "train" / "day=1" / f"y={value}" / "a.csv"
        file.parent.mkdir(parents=True)
        file.write_text("x,z,w\n1,2,1\n")
    channels = find_channels({"train": {}}, {"train": tmp_path / "train"})
    settings = parse({"num_round": 1, "weight_column": "w", "drop_columns": "y,z"}).settings
    reading = reading_settings(settings, channels)
    assert set(reading.partitions) == {
        Partition("train", "day", "1", varies=False),
        Partition("train", "y", "0", varies=True),
    }
    assert (reading.columns, reading.drop) == ({"weight": "w"}, ("y", "z"))
