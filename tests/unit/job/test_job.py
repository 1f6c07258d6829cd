from __future__ import annotations

import json
from typing import TYPE_CHECKING

from smxgb.job.job import Job, load_job
from smxgb.job.sources import Sources

if TYPE_CHECKING:
    from pathlib import Path


def job_of(base: Path, files: list[str], **settings: object) -> Job:
    """Return a job on CSV files, of the same content, by their paths below the channel's folder."""
    for file in files:
        path = base / "rows" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x,z\n1,2\n")
    (base / "settings.json").write_text(json.dumps({"num_round": 1, **settings}))
    environ = {"SAGEMAKER_BASE_DIR": str(base)}
    return load_job(environ, Sources(base / "settings.json", {"train": base / "rows"}))


def test_columns_of_folders_names_that_are_not_read_are_said(tmp_path: Path) -> None:
    job = job_of(tmp_path, ["day=1/y=0/a.csv", "day=1/y=1/a.csv"], drop_columns="y,z")
    for column in ("y", "day"):
        assert f"Channel 'train': the column {column!r} of its folders' names is not read." in job.notes


def test_csv_weights_without_a_csv_channel_are_said_to_have_no_effect(tmp_path: Path) -> None:
    said = "csv_weights has no effect on channel 'train', which holds libsvm."
    for name, expected in (("a.csv", False), ("a.libsvm", True)):
        job = job_of(tmp_path / name, [name], csv_weights="1")
        assert any(note.startswith(said) for note in job.notes) == expected
