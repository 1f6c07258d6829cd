from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from smxgb.errors import UserError
from smxgb.job.channels import Channels, find_channels
from smxgb.job.data_files import find_files

if TYPE_CHECKING:
    from pathlib import Path

CSV = b"1,2.5,3\n0,1,2\n"
LIBSVM = b"1 0:2.5 7:1e-3\n0 1:1\n"


def fill(folder: Path, **files: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content)
    return folder


def channels_in(base: Path, config: dict[str, object]) -> Channels:
    return find_channels(config, {name: base / name for name in config})


def found(tmp_path: Path, **config: object) -> Channels:
    return channels_in(tmp_path, {"train": config})


def mistakes(tmp_path: Path, config: dict[str, object]) -> tuple[str, ...]:
    with pytest.raises(UserError) as caught:
        channels_in(tmp_path, config)
    return caught.value.mistakes


def test_a_channel_without_settings_has_the_usual_ones(tmp_path: Path) -> None:
    fill(tmp_path / "train", a__csv=CSV)
    fill(tmp_path / "validation", a__csv=CSV)
    channels = channels_in(tmp_path, {"train": {}, "validation": {}})
    assert [channel.name for channel in channels] == ["train", "validation"]
    assert channels.train.mode == "File"
    assert (channels.train.distribution, channels.train.is_stated) == ("FullyReplicated", False)


def test_a_distribution_that_is_stated_is_told_from_the_usual_one(tmp_path: Path) -> None:
    fill(tmp_path / "train", a__csv=CSV)
    for said in ("FullyReplicated", "ShardedByS3Key"):
        channel = found(tmp_path, S3DistributionType=said).train
        assert (channel.distribution, channel.is_stated) == (said, True)


@pytest.mark.parametrize("given", ["training", "Train"])
def test_a_usual_spelling_of_train_is_taken_and_said(tmp_path: Path, given: str) -> None:
    fill(tmp_path / given, a__csv=CSV)
    channels = channels_in(tmp_path, {given: {}})
    assert channels.train.folder == tmp_path / given
    assert channels.notes == (f"Channel '{given}' is taken as 'train'.",)


def test_train_and_training_together_are_refused(tmp_path: Path) -> None:
    fill(tmp_path / "train", a__csv=CSV)
    fill(tmp_path / "training", a__csv=CSV)
    (text,) = mistakes(tmp_path, {"train": {}, "training": {}})
    assert text == "channels 'train' and 'training' mean the same: keep one of them."


def test_a_test_channel_is_never_taken_for_validation(tmp_path: Path) -> None:
    fill(tmp_path / "train", a__csv=CSV)
    fill(tmp_path / "test", a__csv=CSV)
    channels = channels_in(tmp_path, {"train": {}, "test": {}, "code": {}, "sm_drivers": {}})
    assert channels.validation is None
    assert channels.notes == ("Channel 'test' is not used: a job reads 'train' and 'validation'.",)


def test_without_a_train_channel_those_that_are_there_are_listed(tmp_path: Path) -> None:
    fill(tmp_path / "trian", a__csv=CSV)
    (text,) = mistakes(tmp_path, {"trian": {}})
    assert text == "there is no channel 'train', only 'trian': rename 'trian' to 'train'."


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("csv", "csv"),
        ("text/csv", "csv"),
        ("TEXT/CSV; charset=utf-8", "csv"),
        ("text/csv;label_size=1", "csv"),
        ("application/x-parquet", "parquet"),
    ],
)
def test_a_content_type_is_understood_in_every_spelling(tmp_path: Path, given: str, expected: str) -> None:
    fill(tmp_path / "train", a=CSV)
    assert found(tmp_path, ContentType=given).train.content_type == expected


@pytest.mark.parametrize("charset", ["utf-16", "nowhere", "utf-8\0junk"])
def test_a_charset_that_is_not_like_utf_8_is_refused(tmp_path: Path, charset: str) -> None:
    fill(tmp_path / "train", a=CSV)
    [text] = mistakes(tmp_path, {"train": {"ContentType": f"text/csv; charset={charset}"}})
    assert "text is read as UTF-8" in text


def test_all_mistakes_of_a_channel_are_reported_together(tmp_path: Path) -> None:
    fill(tmp_path / "train", a=CSV)
    texts = mistakes(
        tmp_path,
        {
            "train": {
                "ContentType": "text/cvs",
                "TrainingInputMode": "Pip",
                "S3DistributionType": "Sharded",
                "CompressionType": "Lzma",
            }
        },
    )
    assert len(texts) == 4
    assert "Did you mean 'text/csv'?" in " ".join(texts)


def test_what_is_not_data_is_skipped_and_named(tmp_path: Path) -> None:
    folder = fill(tmp_path / "train", part__csv=CSV, _SUCCESS=b"", manifest__json=b"[]", empty__csv=b"")
    fill(folder / ".ipynb_checkpoints", part__csv=CSV)
    (folder / ".part.csv.crc").write_bytes(b"crc")
    files, skipped = find_files(folder)
    assert [file.path.name for file in files] == ["part.csv"]
    assert skipped == (
        ".ipynb_checkpoints/",
        ".part.csv.crc",
        "_SUCCESS (empty)",
        "empty.csv (empty)",
        "manifest.json",
    )


def test_a_link_that_leads_nowhere_is_no_mistake_under_a_name_that_is_skipped(tmp_path: Path) -> None:
    fill(tmp_path, part__csv=CSV)
    (tmp_path / ".#part.csv").symlink_to("user@host.1234")  # an editor's lock
    assert [file.path.name for file in find_files(tmp_path)[0]] == ["part.csv"]


def test_files_in_deep_folders_are_found_in_a_fixed_order(tmp_path: Path) -> None:
    for place in ("b/2", "a/10", "a/9"):
        fill(tmp_path / place, same__csv=CSV)
    files, _ = find_files(tmp_path)
    assert [str(file.path.relative_to(tmp_path)) for file in files] == [
        "a/10/same.csv",
        "a/9/same.csv",
        "b/2/same.csv",
    ]


def test_a_link_that_leads_back_up_is_followed_once(tmp_path: Path) -> None:
    fill(tmp_path / "a", x__csv=CSV)
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    files, skipped = find_files(tmp_path)
    assert len(files) == 1
    assert skipped == ("a/loop/ (the same folder as the channel's own)",)


def test_a_folder_that_two_links_lead_to_is_read_once_and_the_other_named(tmp_path: Path) -> None:
    fill(tmp_path / "elsewhere", x__csv=CSV)
    for name in ("a", "b"):
        (tmp_path / "train").mkdir(exist_ok=True)
        (tmp_path / "train" / name).symlink_to(tmp_path / "elsewhere")
    files, skipped = find_files(tmp_path / "train")
    assert [file.path.parent.name for file in files] == ["a"]
    assert skipped == ("b/ (the same folder as a/)",)


def test_a_channel_with_nothing_but_skipped_files_is_refused_with_their_names(tmp_path: Path) -> None:
    fill(tmp_path / "train", _SUCCESS=b"")
    (text,) = mistakes(tmp_path, {"train": {}})
    assert "holds no data file, only _SUCCESS (empty): check" in text


@pytest.mark.parametrize("files", [["a__csv"], ["a__csv", "b__csv"], ["part-0"]])
def test_a_pipe_that_is_not_there_while_the_folder_holds_files_is_refused(
    tmp_path: Path, files: list[str]
) -> None:
    fill(tmp_path / "train", **dict.fromkeys(files, CSV))
    config = {"TrainingInputMode": "Pipe", "ContentType": "text/csv"}
    count = "1 file" if len(files) == 1 else "2 files"
    assert mistakes(tmp_path, {"train": config}) == (
        (
            f"channel 'train': TrainingInputMode='Pipe', but there is no pipe {tmp_path}/train_0, and "
            f"{tmp_path}/train holds {count}, as {files[0].replace('__', '.')}: set the channel's input "
            "mode to File or FastFile."
        ),
    )


def test_a_pipe_may_come_later_where_the_folder_is_empty_or_missing(tmp_path: Path) -> None:
    config = {"TrainingInputMode": "Pipe", "ContentType": "text/csv"}
    assert found(tmp_path, **config).train.mode == "Pipe"
    fill(tmp_path / "train", _SUCCESS=b"x")
    assert found(tmp_path, **config).train.mode == "Pipe"
    fill(tmp_path / "train", a__csv=CSV)
    os.mkfifo(tmp_path / "train_0")
    assert found(tmp_path, **config).train.mode == "Pipe"
