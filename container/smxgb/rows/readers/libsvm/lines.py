"""The lines of libsvm files: `label[:weight] [qid:group] index:value ...  # comment`.

The form is that of LIBSVM's README and SVM-light (qid, comments), with XGBoost's weight behind the label. A
block is parsed by Arrow's CSV parser: each token is put on a line of its own, as `index:value`, where labels,
weights and groups get indices of their own. That is faster than what there is for this format, and exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import csv

from smxgb.errors import UserError
from smxgb.job import BOM, PARQUET_MAGIC
from smxgb.log import notice
from smxgb.rows.batch import SPARSE
from smxgb.rows.readers.column_picks import from_sparse, numbered
from smxgb.rows.readers.csr import ascending, first_infinite
from smxgb.rows.readers.row_rules import CleanRows, clean, row_type
from smxgb.wording import shown_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from smxgb.rows.readers.column_picks import ColumnPicks
    from smxgb.rows.readers.row_rules import Fault
    from smxgb.rows.readers.streams import Stream
    from smxgb.rows.reading import ReadingSettings
    from smxgb.rows.roles import RoleName

    type Ints = npt.NDArray[np.int32]

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 256 << 20
LISTED = 5
"""Mistakes that are named of one block."""

LARGEST_INDEX = 2**31 - 1

LABEL, WEIGHT, GROUP = -1, -2, -3
"""What stands as the index of a label, a weight and a group."""

EXACT_GROUPS = (
    "Number the groups with integers below 2^24, since values are read as 32-bit floats, or write larger "
    "ones behind qid:."
)

NEWLINE, BLANK = ord("\n"), ord(" ")
COMMENT = re.compile(rb"#[^\n]*")
LINE_BEGIN = re.compile(rb"\n\s+")
WEIGHTED = re.compile(rb"^-1:([^\s:]+):(\S+)", re.MULTILINE)
QID = re.compile(rb"(?<=\s)qid:(\d+)(?!\S)")
SPACE = bytes.maketrans(b" \t\v\f", b"\n\n\n\n")

NUMBER = r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)"
LABEL_TOKEN = re.compile(rf"({NUMBER})(:{NUMBER})?", re.ASCII | re.IGNORECASE)
VALUE_TOKEN = re.compile(rf"(\d+):{NUMBER}", re.ASCII | re.IGNORECASE)

TYPES = pa.schema([("index", pa.int32()), ("value", pa.float32())])
PARSE = csv.ParseOptions(delimiter=":", quote_char=False)
CONVERT = csv.ConvertOptions(column_types=TYPES, null_values=[])


@dataclass(frozen=True)
class LineBlock:
    """Whole lines; `line` is the number of the first, counted from 1."""

    data: bytes
    line: int


class _Unreadable(Exception):  # noqa: N818 - it never leaves this module
    """A block is not what the fast parser takes."""


def line_blocks(stream: Stream, size: int = BLOCK_BYTES) -> Iterator[LineBlock]:
    """Yield a text in blocks of about `size` bytes that end where a line ends, each without blank ends.

    Raises UserError for a line that is longer than `LONGEST_LINE`.
    """
    held = last = b""
    line = 1
    while chunk := stream.read(size):
        chunk = chunk.replace(b"\r", b"\n") if b"\r" in chunk and b"\n" not in chunk else chunk
        held = held + chunk if held else chunk
        last = chunk[-1:]
        end = held.rfind(b"\n") + 1
        if end:
            yield LineBlock(held[:end], line)
            line += held.count(b"\n", 0, end)
            held = held[end:]
        elif len(held) > LONGEST_LINE:
            raise UserError(
                f"{stream.source}, line {line}: the line does not end within {LONGEST_LINE >> 20} MB. The "
                "file is not libsvm."
            )
    if held:
        yield LineBlock(held, line)
    stream.text_ended(last)


def check_libsvm(data: bytes, source: str) -> None:
    """Raise UserError if a channel's first bytes can't be those of a libsvm file."""
    if data.startswith(PARQUET_MAGIC):
        raise UserError(
            f"{source} is a Parquet file, not libsvm: give its channel the content type "
            "application/x-parquet."
        )
    if b"\0" in data[:4096]:
        raise UserError(f"{source} is not libsvm: it holds bytes that are not text.")
    first = data.removeprefix(BOM).split(b"\n", 1)[0].decode(errors="replace")
    if "," in first.split("#")[0]:
        raise UserError(
            f"{source} is not libsvm (its first line is {shown_value(first)}): a line is a label and "
            "index:value pairs. If it is CSV, give its channel the content type text/csv."
        )


def check_features(block: LineBlock, source: str) -> None:
    """Raise UserError if a file's first lines are several and hold one number each; a single one is noticed.

    Files of that form beside others hold weights or the sizes of groups, by a convention of XGBoost's text
    loader and of LightGBM.
    """
    if b":" in block.data:
        return
    rows = [line for line in _lines(block.data) if line.strip()]
    if not rows:
        return
    place = f"{source}, line {block.line}: {shown_value(rows[0].decode(errors='replace').strip())}"
    cure = "Weights stand in the lines, as label:weight, and groups as qid: behind the label"
    if len(rows) > 1:
        raise UserError(
            f"{place}: no line of the file has an index:value pair. {cure}: write them so, and take a file "
            "of weights or groups out of the channel."
        )
    notice(f"{place} is read as the label of a row without a value. {cure}, not in a file of their own.")


def roles_of(data: bytes) -> tuple[RoleName, ...] | None:
    """Return what the first line that is a row holds beside its features; None if there is no such line."""
    tokens = next((line.split() for line in _lines(data) if line.strip()), None)
    if tokens is None:
        return None
    roles: list[RoleName] = ["label"]
    if b":" in tokens[0]:
        roles.append("weight")
    if len(tokens) > 1 and tokens[1].startswith(b"qid:"):
        roles.append("group")
    return tuple(roles)


@dataclass(frozen=True)
class Lines:
    """Turns blocks of lines into clean rows; the lines have `roles`, `picks` says what else becomes one."""

    roles: tuple[RoleName, ...]
    settings: ReadingSettings
    picks: ColumnPicks

    @property
    def all_roles(self) -> tuple[RoleName, ...]:
        """The roles of the clean rows."""
        return (*self.roles, *(role for role, _ in self.picks.roles))

    def part(self, source: str, block: LineBlock) -> CleanRows:
        """Return the block's rows. Raises UserError with the first mistakes in the block."""
        try:
            rows = self._rows(block.data)
        except _Unreadable:
            raise UserError(*self._complaints(source, block)) from None
        if self.picks:
            rows = numbered(from_sparse(rows, self.picks))
        part, faults = clean(rows, self.all_roles, self.settings)
        if faults:
            numbers, lines = _numbered(block)
            raise UserError(*(self._text(fault, rows, source, numbers, lines) for fault in faults))
        return part

    def _text(
        self, fault: Fault, rows: pa.RecordBatch, source: str, numbers: list[int], lines: list[bytes]
    ) -> str:
        value = shown_value(lines[int(fault.rows[0])].decode(errors="replace"))
        if fault.column < len(self.all_roles):
            column: str = self.all_roles[fault.column]
        else:
            index, value = first_infinite(rows, fault)
            column = f"index {index}"
        place = ("line", lambda row: numbers[row])
        return fault.of_groups(self.all_roles, EXACT_GROUPS).text(source, column, place, lambda _: value)

    def _rows(self, data: bytes) -> pa.RecordBatch:
        """Parse the lines of a block. Raises _Unreadable if anything is not as it should be."""
        data = _tidy(data)
        # Arrow reads digits of base 16 too.
        if b"x" in data or b"X" in data:
            raise _Unreadable
        count = data.count(b"\n") + 1 if data else 0
        groups = QID.findall(data) if "group" in self.roles else []
        index, value = _tokens(self._one_to_a_line(data, count)) if data else _nothing()
        starts = np.flatnonzero(index == LABEL)
        markers = [LABEL, *([WEIGHT] if "weight" in self.roles else []), *([GROUP] if groups else [])]
        is_feature = index >= 0
        if len(starts) != count or len(index) - np.count_nonzero(is_feature) != count * len(markers):
            raise _Unreadable
        for place, marker in enumerate(markers):
            if starts.size and (starts[-1] + place >= len(index) or (index[starts + place] != marker).any()):
                raise _Unreadable
        roles = [pa.array(value[starts + place]) for place, marker in enumerate(markers) if marker != GROUP]
        if "group" in self.roles:
            if len(groups) != count:
                raise _Unreadable
            roles.append(pa.array(_integers(groups)))
        offsets = np.append(starts - len(markers) * np.arange(count), len(index) - len(markers) * count)
        indices, values, twice = ascending(index[is_feature], value[is_feature], offsets)
        if twice is not None:
            raise _Unreadable
        offsets = offsets.astype(np.int32)
        arrays = [
            *roles,
            pa.ListArray.from_arrays(offsets, pa.array(indices)),
            pa.ListArray.from_arrays(offsets, pa.array(values)),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*row_type(self.roles), *SPARSE]))

    def _one_to_a_line(self, data: bytes, count: int) -> bytes:
        text = b"-1:" + data.replace(b"\n", b"\n-1:")
        if "weight" in self.roles:
            text, weights = WEIGHTED.subn(rb"-1:\1\n-2:\2", text)
            if weights != count:  # else an index -2 could pass for the weight that a line lacks
                raise _Unreadable
        if "group" in self.roles:
            text = text.replace(b"qid:", b"-3:")
        return text.translate(SPACE)

    def _complaints(self, source: str, block: LineBlock) -> list[str]:
        """Return what is wrong with the lines of a block that can't be parsed, one by one."""
        texts = []
        for number, line in zip(*_numbered(block), strict=True):
            try:
                self._rows(line)
            except _Unreadable:
                texts.append(f"{source}, line {number}: {self._complaint(line)}")
                if len(texts) == LISTED:
                    break
        return texts or [f"{source}, after line {block.line}: the lines can't be read as libsvm."]

    def _complaint(self, line: bytes) -> str:
        label, *tokens = (token.decode(errors="replace") for token in line.split())
        match = LABEL_TOKEN.fullmatch(label)
        if match is None:
            return f"{shown_value(label)} is not a label: a line begins with a number, or with label:weight."
        group = tokens.pop(0) if tokens and tokens[0].startswith("qid:") else None
        for role, has in (("weight", match[2] is not None), ("group", group is not None)):
            if has != (role in self.roles):
                word = "qid" if role == "group" else role
                return (
                    f"the line has {'a' if has else 'no'} {word}, the channel's first line has "
                    f"{'none' if has else 'one'}: all lines need it, or none."
                )
        if group is not None and not re.fullmatch(r"qid:\d{1,18}", group):
            return f"{shown_value(group)} is not a group: qid: and a whole number are needed."
        return _features_complaint(tokens) or "it can't be read as libsvm."


def _features_complaint(tokens: list[str]) -> str | None:
    seen: set[int] = set()
    for token in tokens:
        match = VALUE_TOKEN.fullmatch(token)
        if match is None:
            return f"{shown_value(token)} is not index:value: an index is a whole number, 0 or more."
        index = int(match[1])
        if index > LARGEST_INDEX:
            return f"{shown_value(token)} has too large an index: {LARGEST_INDEX} is the largest."
        if index in seen:
            return f"the index {index} stands there twice: give each feature of a row one value."
        seen.add(index)
    return None


def _tidy(data: bytes) -> bytes:
    """Return the lines without comments, blank lines, spaces before them, and the end of the last."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"#" in data:
        data = COMMENT.sub(b"", data)
    data = data.removeprefix(BOM).strip()
    codes = np.frombuffer(data, np.uint8)
    if (codes[1:][codes[:-1] == NEWLINE] <= BLANK).any():
        data = LINE_BEGIN.sub(b"\n", data)
    return data


def _tokens(text: bytes) -> tuple[Ints, npt.NDArray[np.float32]]:
    options = csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=TYPES.names)
    try:
        table = csv.read_csv(pa.BufferReader(text), options, PARSE, CONVERT).combine_chunks()
    except pa.ArrowInvalid:
        raise _Unreadable from None
    return table.column(0).to_numpy(), table.column(1).to_numpy()


def _nothing() -> tuple[Ints, npt.NDArray[np.float32]]:
    return np.zeros(0, np.int32), np.zeros(0, np.float32)


def _integers(texts: list[bytes]) -> npt.NDArray[np.int64]:
    try:
        return np.array(texts, "S").astype(np.int64) if texts else np.zeros(0, np.int64)
    except (ValueError, OverflowError):
        raise _Unreadable from None


def _numbered(block: LineBlock) -> tuple[list[int], list[bytes]]:
    """Return the numbers of the lines of a block that hold a row, and these lines without their comments."""
    rows = [(block.line + number, line) for number, line in enumerate(_lines(block.data)) if line.strip()]
    return [number for number, _ in rows], [line for _, line in rows]


def _lines(data: bytes) -> list[bytes]:
    data = data.removeprefix(BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return COMMENT.sub(b"", data).split(b"\n")
