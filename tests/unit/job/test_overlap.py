from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from smxgb.job import overlaps
from smxgb.job.channels import find_channels

if TYPE_CHECKING:
    from pathlib import Path

ROWS = b"1,2,3\n0,4,5\n" * 20_000
"""So long that only both ends are compared."""

CURE = (
    "Metrics and early stopping are then judged on rows that are trained on: give each channel its own files."
)


def said(base: Path, **files: bytes) -> list[str]:
    """Return what is said of files by channel and name, as `train__a` for train/a."""
    names = set()
    for path, content in files.items():
        file = base / path.replace("__", "/")
        names.add(path.partition("__")[0])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    found = find_channels(
        {name: {"ContentType": "csv"} for name in names}, {name: base / name for name in names}
    )
    return list(overlaps(found.train, found.validation))


def test_a_file_that_both_channels_hold_is_named(tmp_path: Path) -> None:
    assert said(tmp_path, train__a=ROWS, train__b=b"1,2,3\n", validation__c=ROWS) == [
        f"train/a and validation/c are the same file. {CURE}"
    ]


def test_more_files_that_both_hold_are_counted(tmp_path: Path) -> None:
    files = {
        f"{channel}__{number}": ROWS + b"1,2,3\n" * number
        for channel in ("train", "validation")
        for number in (1, 2, 3)
    }
    assert said(tmp_path, **files) == [
        f"train/1 and validation/1 are the same file, and 2 more files are so too. {CURE}"
    ]


@pytest.mark.parametrize("name", ["validation", "val", "Valid", "test", "Holdout"])
def test_a_folder_for_validation_in_train_is_named(tmp_path: Path, name: str) -> None:
    (text,) = said(tmp_path, train__a=ROWS, **{f"train__{name}__b": ROWS[1:]})
    assert text == (
        f"channel train holds a folder {name!r}, whose rows are trained on. If they are for validation or a "
        "test, give them a channel or a prefix of their own, and keep them out of train's S3 prefix."
    )


def test_a_prefix_that_holds_both_channels_is_said_both_ways(tmp_path: Path) -> None:
    texts = said(tmp_path, train__train__a=ROWS, train__validation__b=ROWS[1:], validation__b=ROWS[1:])
    assert len(texts) == 2
    assert texts[1].startswith("train/validation/b and validation/b are the same file. ")


def test_files_of_one_size_and_other_bytes_are_no_overlap(tmp_path: Path) -> None:
    assert not said(tmp_path, train__a=ROWS, validation__a=ROWS[:-2] + b"6\n", train__folder__b=b"1,2\n")


@pytest.mark.parametrize(
    ("names", "said_of_them"),
    [
        (
            ("a.csv", "a (1).csv"),
            "train/a (1).csv and train/a.csv are the same file. Its rows then count twice",
        ),
        (("a.csv", "b/c.csv", "d.csv"), "train/a.csv and train/b/c.csv are the same file, and 1 more file"),
    ],
)
def test_copies_in_one_channel_are_named(tmp_path: Path, names: tuple[str, ...], said_of_them: str) -> None:
    (text,) = said(tmp_path, **{f"train__{name.replace('/', '__')}": ROWS for name in names})
    assert text.startswith(said_of_them)


def test_a_file_beside_its_compressed_form_is_named(tmp_path: Path) -> None:
    (text,) = said(tmp_path, **{"train__a.csv": ROWS, "train__a.csv.gz": gzip.compress(ROWS)})
    assert text.startswith("train/a.csv and train/a.csv.gz are one file by their names. Its rows then count")


@pytest.mark.parametrize("name", ["a.csv~", "a.csv.bak", "a.csv.orig", ".a.csv.swp", "a.csv.tmp"])
def test_a_backup_is_no_data(tmp_path: Path, name: str) -> None:
    assert not said(tmp_path, **{"train__a.csv": ROWS, f"train__{name}": ROWS})
