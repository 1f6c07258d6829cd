"""Bodies of CSV, read cell by cell as the files of a training are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from smxgb.errors import UserError
from smxgb.job import BOM, PARQUET_MAGIC
from smxgb.rows.bodies.body import SOURCE, as_matrix
from smxgb.rows.bodies.plain import LARGEST, plain_rows
from smxgb.rows.readers.csv.blocks import CsvBlock, is_blank, line_end, read_blocks
from smxgb.rows.readers.csv.cells import Cells
from smxgb.rows.readers.csv.dialect import LIBSVM, SAMPLE, first_records, numbered_records
from smxgb.rows.readers.csv.evidence import NOTHING, judged
from smxgb.rows.readers.csv.header import read_head
from smxgb.rows.readers.csv.reader import holding
from smxgb.rows.readers.csv.spelling import LETTERS, TRUTH, kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.rows.batch import FloatArray
    from smxgb.rows.bodies.body import Body
    from smxgb.rows.schema import Layout
    from smxgb.rows.signature import Signature

DELIMITERS = ",\t;| "
CURE = "A missing value is an empty cell, NA, NaN, null, None or N/A."
"""What is said of a cell that is not a number."""

type Header = Literal["true", "false"]


def csv_rows(body: Body, signature: Signature, *, label_first: bool = False) -> Iterator[FloatArray]:
    """Yield the rows of a body of CSV.

    A first record that has the names of all features of the model is a header; the columns may then stand in
    any order. For a model without names it is one if it is text and the second record is numbers. Values are
    set apart by a comma, or by another delimiter with which alone the first record has the right number.

    Raises:
        UserError: If columns are too few or too many, or if a cell is not a number, with line and column.
    """
    if body.size <= LARGEST and not label_first and may_be_plain(signature):
        rows = plain_rows(body.stream.read(), signature.width)
        if rows is not None:
            yield rows
            return
        body.stream.seek(0)
    head = body.head()
    if is_blank(head.removeprefix(BOM)):
        return
    _check_text(head)
    text = head.removeprefix(BOM).decode(errors="replace")
    delimiter = _delimiter(text, signature, label_first=label_first)
    header = _header(text, delimiter, signature)
    blocks = read_blocks(body.opened(), delimiter)
    first = next(blocks)
    found = read_head(first.data, delimiter, header, SOURCE)
    if found is None:
        return
    layout = signature.layout(
        found.names,
        found.width,
        f"{SOURCE}, line 1," if header == "false" else SOURCE,
        label_first=label_first,
    )
    sample = first_records(first.data[found.start :], delimiter, SAMPLE)
    cells = replace(
        cells_of(signature, replace(layout, letters=holding(sample, LETTERS)), header),
        delimiter=delimiter,
        start=found.start,
        worded=frozenset(holding(sample, TRUTH)),
    )
    if len(first.data) > found.start:
        lines = first.data.count(line_end(first.data), 0, found.start)
        first = CsvBlock(first.data[found.start :], found.start, lines)
        yield as_matrix(cells.part(first).data, signature)
    for block in blocks:
        yield as_matrix(cells.part(block).data, signature)


def may_be_plain(signature: Signature) -> bool:
    """Tell whether a body of plain numbers can hold no header and no categories."""
    return not signature.categorical and not any(kind(name) == "number" for name in signature.names or ())


def cells_of(signature: Signature, layout: Layout, header: Header = "false", word: str = "line") -> Cells:
    """Return what turns records of a layout, set apart by commas, into rows; messages number by `word`."""
    settings = replace(signature.settings, header=header)
    return Cells(
        Path(SOURCE),
        SOURCE,
        ",",
        layout,
        layout.features,
        settings,
        start=0,
        headless=header == "false",
        word=word,
        cure=CURE,
    )


def _check_text(head: bytes) -> None:
    if head.startswith(PARQUET_MAGIC):
        raise UserError(f"{SOURCE} is Parquet, not CSV: give the content type application/x-parquet.")
    if b"\0" in head[:4096]:
        raise UserError(f"{SOURCE} is not CSV: it holds bytes that are not text.")


def _delimiter(text: str, signature: Signature, *, label_first: bool) -> str:
    for delimiter in DELIMITERS:
        cells = _first(text, delimiter)
        if len(cells) == signature.width + label_first or (signature.names and not signature.lacking(cells)):
            return delimiter
    line = text.lstrip("\r\n").split("\n", 1)[0]
    if LIBSVM.fullmatch(line):
        raise UserError(f"{SOURCE} is libsvm, not CSV: give the content type text/libsvm.")
    return ","


def _header(text: str, delimiter: str, signature: Signature) -> Header:
    cells = _first(text, delimiter)
    if signature.names is None:
        records = [row for _, row in zip(range(2), _records(text, delimiter), strict=False)]
        has_words = any(kind(cell) == "text" for cell in cells)
        is_one = has_words and len(records) > 1 and not signature.categorical
        return "true" if is_one and judged(records, NOTHING).is_header else "false"
    lacking = signature.lacking(cells)
    is_misspelt = lacking and not signature.categorical and len(lacking) < signature.width
    # Numbers may be names and values; only text that names features shows that a header is meant.
    if is_misspelt and any(cell in signature.names and kind(cell) == "text" for cell in cells):
        return "true"
    return "false" if lacking else "true"


def _first(text: str, delimiter: str) -> list[str]:
    return [cell.strip() for cell in next(_records(text, delimiter), [])]


def _records(text: str, delimiter: str) -> Iterator[list[str]]:
    return (row for _, row in numbered_records(text, delimiter))
