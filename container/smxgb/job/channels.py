"""Input channels: their input modes and content types, and the files that hold their data.

The names, modes and content types are those of SageMaker's inputdataconfig.json and of AWS's XGBoost image.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, cast, get_args

from smxgb.errors import Mistakes, UserError
from smxgb.job.content_types import CONTENT_TYPES, DEFAULT, FORMATS, detect_content_type
from smxgb.job.data_files import DataFile, find_files
from smxgb.job.side_files import refuse_side_files
from smxgb.wording import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from smxgb.job.content_types import ContentType, Format

type Name = Literal["train", "validation"]
type InputMode = Literal["File", "FastFile", "Pipe"]
type Distribution = Literal["FullyReplicated", "ShardedByS3Key"]

SPELLINGS: Mapping[str, Name] = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
}
# Channels without rows: the user's script, the SDK's launcher, and the model to go on from (`base_model`).
SILENT = {"code", "sm_drivers", "model"}
FIRST_EPOCH = 0
"""SageMaker numbers the FIFOs of a channel, one for each pass over its data, from 0."""


@dataclass(frozen=True)
class Channel:
    """One channel with its non-empty data files, sorted by path below `folder`.

    `why` says how the content type was found, `skipped` names what below the folder is not data. In Pipe mode
    there is one file, the FIFO, of unknown size; `wrapped` says that it holds each file as a record of
    RecordIO. `is_stated` says that the configuration names the distribution, which local mode leaves out.
    """

    name: Name
    folder: Path
    content_type: ContentType
    mode: InputMode
    distribution: Distribution
    files: tuple[DataFile, ...]
    why: str = "given"
    skipped: tuple[str, ...] = ()
    wrapped: bool = False
    is_stated: bool = False

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def format(self) -> Format:
        """What is known of its content type."""
        return FORMATS[self.content_type]

    @property
    def partitions(self) -> Mapping[str, set[str]]:
        """The columns that only the folders' names hold, as y=0 (Hive's layout), with their values."""
        found: dict[str, set[str]] = {}
        if self.mode != "Pipe":
            folders = {part for file in self.files for part in file.path.relative_to(self.folder).parts[:-1]}
            for name, equals, value in (folder.partition("=") for folder in folders):
                if name and equals:
                    found.setdefault(name, set()).add(value)
        return found


@dataclass(frozen=True)
class Channels:
    """The channels a job trains on, and what the log says about the others."""

    train: Channel
    validation: Channel | None
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Channel]:
        """Yield the channels that are there, train first."""
        yield self.train
        if self.validation is not None:
            yield self.validation


def find_channels(
    config: Mapping[str, object], folders: Mapping[str, Path], *, alone: bool = True
) -> Channels:
    """Return the job's channels; `config` is inputdataconfig.json, `folders` has the folder of each.

    With several hosts, `alone` false, a channel may have no file on this one.

    Raises:
        UserError: With all that is wrong with all channels.
    """
    mistakes = Mistakes()
    notes = []
    chosen: dict[Name, str] = {}
    for given in sorted(config):
        name = SPELLINGS.get(given.lower())
        if name is None:
            if given not in SILENT:
                notes.append(f"Channel '{given}' is not used: a job reads 'train' and 'validation'.")
        elif name in chosen:
            mistakes.add(f"channels '{chosen[name]}' and '{given}' mean the same: keep one of them.")
        else:
            chosen[name] = given
            if given != name:
                notes.append(f"Channel '{given}' is taken as '{name}'.")
    channels: dict[Name, Channel] = {}
    for name, given in chosen.items():
        with mistakes.collect():
            channels[name] = _channel(name, config[given], folders[given], alone=alone)
    if "train" not in chosen:
        mistakes.add(_no_train(sorted(config)))
    mistakes.raise_any()
    return Channels(channels["train"], channels.get("validation"), tuple(notes))


def _no_train(names: list[str]) -> str:
    close = get_close_matches("train", names, n=1)
    cure = f"rename '{close[0]}' to" if close else "name the channel with the training data"
    return f"there is no channel 'train', only {', '.join(repr(name) for name in names)}: {cure} 'train'."


def _channel(name: Name, config: object, folder: Path, *, alone: bool) -> Channel:
    mistakes = Mistakes()
    if not isinstance(config, dict):
        raise UserError(
            f"inputdataconfig.json: channel '{folder.name}' is {json.dumps(config)}: it must be an object, "
            'as {"ContentType": "text/csv"}, or {}.'
        )
    choice = _Choice(folder.name, config, mistakes)
    mode = cast("InputMode", choice.one_of("TrainingInputMode", "File", get_args(InputMode.__value__)))
    distribution = cast(
        "Distribution",
        choice.one_of("S3DistributionType", "FullyReplicated", get_args(Distribution.__value__)),
    )
    wrapper = choice.one_of("RecordWrapperType", "None", ("None", "RecordIO"))
    if wrapper != "None" and mode != "Pipe":
        choice.must_not("RecordWrapperType", f"only Pipe mode wraps files, and the channel's is {mode}")
    # The value is checked and not used: the first bytes of a file show whether it is compressed.
    choice.one_of("CompressionType", "None", ("None", "Gzip"))
    given = choice.content_type()
    if mode == "Pipe" and given is None:
        choice.must_not(
            "TrainingInputMode", "a pipe can be read once only, so set the channel's content type"
        )
    if mode == "Pipe" and given and FORMATS[given].no_pipe:
        choice.must_not("TrainingInputMode", FORMATS[given].no_pipe)
    mistakes.raise_any()
    if mode == "Pipe" and given:
        fifo = DataFile(folder.with_name(f"{folder.name}_{FIRST_EPOCH}"), 0)
        _refuse_files_instead(fifo.path, folder)
        return Channel(name, folder, given, mode, distribution, (fifo,), wrapped=wrapper == "RecordIO")
    if not folder.is_dir() and alone:
        raise UserError(_no_folder(folder))
    files, skipped = find_files(folder, streamed=mode == "FastFile") if folder.is_dir() else ((), ())
    if not files and alone:
        raise UserError(_no_files(folder, skipped))
    refuse_side_files(folder, [file.path for file in files])
    if given or not files:
        content_type, why = given or DEFAULT, "given" if given else "no file tells"
    else:
        content_type, why = detect_content_type(folder.name, [file.path for file in files])
    is_stated = bool(config.get("S3DistributionType"))
    return Channel(name, folder, content_type, mode, distribution, files, why, skipped, is_stated=is_stated)


@dataclass(frozen=True)
class _Choice:
    """Reads one channel's settings; a missing or empty one has its default."""

    channel: str
    config: Mapping[str, object]
    mistakes: Mistakes

    def one_of(self, key: str, default: str, allowed: tuple[str, ...]) -> str:
        value = str(self.config.get(key) or default)
        for choice in allowed:
            if value.lower() == choice.lower():
                return choice
        self.mistakes.add(f"channel '{self.channel}': {key}={value!r} is not one of {', '.join(allowed)}.")
        return default

    def must_not(self, key: str, reason: str) -> None:
        value = self.config.get(key)
        self.mistakes.add(f"channel '{self.channel}': {key}={value!r} can't be: {reason}.")

    def content_type(self) -> ContentType | None:
        text = str(self.config.get("ContentType") or "").strip()
        kind, *parameters = (part.strip().lower() for part in text.split(";"))
        if not kind:
            return None
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key == "label_size" and value != "1":
                self.mistakes.add(
                    f"channel '{self.channel}': content type {text!r}: label_size must be 1, since a row "
                    "has one label."
                )
            if key == "charset" and not _is_like_ascii(value.strip("\"'")):
                self.mistakes.add(
                    f"channel '{self.channel}': content type {text!r}: text is read as UTF-8: write the "
                    "files so, and leave charset out."
                )
        if kind not in CONTENT_TYPES:
            # Only what follows the slash is compared, or application/json would be nearest to Parquet's.
            alike = {name.split("/")[-1]: name for name in CONTENT_TYPES if ("/" in name) == ("/" in kind)}
            close = get_close_matches(kind.split("/")[-1], alike, n=1)
            hint = f" Did you mean {alike[close[0]]!r}?" if close else ""
            self.mistakes.add(
                f"channel '{self.channel}': content type {text!r} is not one of "
                f"{', '.join(CONTENT_TYPES)}.{hint}"
            )
            return None
        return CONTENT_TYPES[kind]


def _is_like_ascii(charset: str) -> bool:
    """Return whether numbers are the same bytes in a character set as in UTF-8."""
    try:
        return "1,".encode(charset) == b"1,"
    except (LookupError, ValueError):  # a name with a NUL is no value for Python
        return False


def _refuse_files_instead(fifo: Path, folder: Path) -> None:
    """Raise UserError if a channel's files are there, and its pipe is not: nobody will ever write to that."""
    files = find_files(folder)[0] if not fifo.exists() and folder.is_dir() else ()
    if files:
        raise UserError(
            f"channel '{folder.name}': TrainingInputMode='Pipe', but there is no pipe {fifo}, and {folder} "
            f"holds {counted(len(files), 'file')}, as {printable(files[0].path.name)}: set the channel's "
            "input mode to File or FastFile."
        )


def _no_folder(folder: Path) -> str:
    if folder.exists():
        return f"channel '{folder.name}': {folder} is a file; it must be a folder with the channel's files."
    return (
        f"channel '{folder.name}': its folder {folder} does not exist: check the channel's S3 address, or, "
        "in plain Docker, what is mounted at /opt/ml."
    )


def _no_files(folder: Path, skipped: tuple[str, ...]) -> str:
    others = f", only {', '.join(skipped[:5])}" if skipped else ""
    return (
        f"channel '{folder.name}' holds no data file{others}: check the channel's S3 address and that its "
        "files have rows."
    )
