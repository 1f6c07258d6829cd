"""Bodies of JSON and JSON lines. Their rows become records of CSV, so that a value means the same in both."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from smxgb.errors import UserError
from smxgb.rows.bodies.body import SOURCE, as_matrix
from smxgb.rows.bodies.csv import cells_of, may_be_plain
from smxgb.rows.bodies.plain import plain_rows
from smxgb.rows.readers.csv.blocks import CsvBlock
from smxgb.rows.readers.libsvm.lines import line_blocks
from smxgb.rows.signature import UnfitError
from smxgb.wording import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from smxgb.rows.batch import FloatArray
    from smxgb.rows.bodies.body import Body
    from smxgb.rows.signature import Signature

LISTED = 10
INFINITIES = {"NaN": "NaN", "Infinity": "inf", "-Infinity": "-inf"}
MISSING = "NA"

DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=INFINITIES.get)
"""Numbers stay the texts that they are: a 64-bit float on the way would round some of them twice."""

type Cells = list[str]


def json_rows(body: Body, signature: Signature, *, label_first: bool = False) -> Iterator[FloatArray]:  # noqa: ARG001 - JSON has no labels
    """Yield the rows of a body of JSON.

    It is a list of rows, or one row, or an object with these as `instances`, `features` or `data`. A row is a
    list of values in the order of the features, an object with these as `features` or `values`, or an object
    with a value for the name of each feature.

    Raises:
        UserError: If it is not so, naming the row.
    """
    value = _decoded(body.stream.read(), SOURCE)
    rows = _instances(value, signature)
    yield _matrix((_cells(row, signature, number) for number, row in enumerate(rows, 1)), signature, 0)


def jsonlines_rows(body: Body, signature: Signature, *, label_first: bool = False) -> Iterator[FloatArray]:  # noqa: ARG001
    """Yield the rows of a body with one row of JSON in each line, as `json_rows` takes them.

    Raises:
        UserError: If a line is not a row, naming it.
    """
    before = 0
    for block in line_blocks(body.opened()):
        lines = [line for line in block.data.splitlines() if line.strip()]
        rows = (_decoded(line, f"{SOURCE}, row {before + number}") for number, line in enumerate(lines, 1))
        cells = (_cells(row, signature, before + number) for number, row in enumerate(rows, 1))
        yield _matrix(cells, signature, before)
        before += len(lines)


def _decoded(data: bytes, source: str) -> Any:
    try:
        text = data.decode("utf-8-sig").strip()
        return DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise UserError(f"{source} is not UTF-8 (byte {error.start}).") from None
    except (ValueError, RecursionError) as error:
        where = ""
        if isinstance(error, json.JSONDecodeError):
            where = f", line {error.lineno}, column {error.colno}: {error.msg}"
        raise UserError(f"{source} is not JSON{where}.") from None


def _instances(value: Any, signature: Signature) -> list[Any]:
    """Return the rows of a document."""
    names = signature.names or ()
    if isinstance(value, dict):
        for key in ("instances", "data", "inputs"):
            if key in value and key not in names:
                return _instances(value[key], signature)
    if isinstance(value, dict) and isinstance(value.get("features"), list) and "features" not in names:
        return _instances(value["features"], signature)
    if not isinstance(value, list):
        return [value]
    return value if not value or isinstance(value[0], list | dict) else [value]


def _cells(row: Any, signature: Signature, number: int) -> Cells:
    """Return the cells of a row, in the order of the features."""
    names = signature.names
    if isinstance(row, dict):
        for key in ("data", "features", "values"):
            if key in row and key not in (names or ()):
                return _cells(row[key], signature, number)
        if names is None:
            raise UserError(
                f"{SOURCE}, row {number}: it names its values ({_listed(row)}), and the model's features "
                "have no names: give a list of values in the order of the training."
            )
        lacking = signature.lacking(row)
        if lacking:
            raise UnfitError(f"{SOURCE}, row {number}: it lacks {_listed(lacking)}, features of the model.")
        row = [row[name] for name in names]
    if not isinstance(row, list):
        raise UserError(f"{SOURCE}, row {number}: a list of values, or an object with them, is needed.")
    if len(row) != signature.width:
        signature.layout(None, len(row), f"{SOURCE}, row {number},")
    return [
        _cell(value, number, index, is_category=signature.schema.names[index] in signature.categorical)
        for index, value in enumerate(row)
    ]


def _cell(value: Any, number: int, index: int, *, is_category: bool) -> str:
    match value:
        case str():
            return value
        case None:
            return MISSING
        case bool():
            return str(value).lower() if is_category else str(int(value))
    what = "a list" if isinstance(value, list) else "an object"
    raise UserError(f"{SOURCE}, row {number}, column {index}: it is {what}, and one value is needed.")


def _matrix(rows: Iterable[Cells], signature: Signature, before: int) -> FloatArray:
    """Return records as CSV would have them read; `before` rows came before."""
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\n").writerows(rows)
    data = written.getvalue().encode()
    plain = plain_rows(data, signature.width) if may_be_plain(signature) else None
    if plain is not None:
        return plain
    layout = signature.layout(None, signature.width, SOURCE)
    cells = cells_of(signature, layout, word="row")
    return as_matrix(cells.part(CsvBlock(data, 0, before)).data, signature)


def _listed(names: Iterable[str] | Mapping[str, Any]) -> str:
    found = [repr(short(name)) for name in names]
    more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return ", ".join(found[:LISTED]) + more
