"""Responses: answers in the content type that a request accepts."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from smxgb.literals import number_of
from smxgb.rows import answer_records
from smxgb.serving.answers import SCORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from smxgb.serving.answers import Columns


@dataclass(frozen=True)
class ResponseForm:
    """How answers are written: `write` turns the columns of some rows into bytes, which others follow.

    `begin`, `between` and `end` stand around the bytes of all parts. `holds_text` says that it can hold
    words.
    """

    content_type: str
    write: Callable[[Columns], bytes]
    begin: bytes = b""
    between: bytes = b""
    end: bytes = b""
    holds_text: bool = True

    def parts(self, answers: Iterable[Columns]) -> Iterator[bytes]:
        """Yield the bytes of a response."""
        follows = False
        for columns in answers:
            written = self.write(columns)
            if written:
                yield (self.between if follows else self.begin) + written
                follows = True
        yield self.end if follows else self.begin + self.end


def _rows(columns: Columns) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each row as plain numbers and lists; a key without values is null."""
    count = next((len(column) for column in columns.values() if column is not None), 0)
    nulls = [None] * count
    return zip(*(nulls if column is None else column.tolist() for column in columns.values()), strict=True)


def _csv(columns: Columns) -> bytes:
    if set(columns) != {SCORE}:
        return _selected_csv(columns)
    scores = columns[SCORE]
    values: list[Any] = [] if scores is None else scores.tolist()
    if scores is not None and scores.ndim > 1:
        lines = [",".join(map(repr, row)) for row in values]
    else:
        lines = list(map(repr, values))
    return "\n".join(lines).encode()


def _selected_csv(columns: Columns) -> bytes:
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\n")
    writer.writerows(["" if value is None else value for value in row] for row in _rows(columns))
    return written.getvalue().removesuffix("\n").encode()


def _objects(columns: Columns, between: str) -> bytes:
    keys = list(columns)
    scores = columns.get(SCORE)
    if keys == [SCORE] and scores is not None and scores.ndim == 1 and np.isfinite(scores).all():
        return between.join([f'{{"score": {score!r}}}' for score in scores.tolist()]).encode()
    objects = (dict(zip(keys, row, strict=True)) for row in _rows(columns))
    return between.join(json.dumps(_defined(each)) for each in objects).encode()


def _defined(value: Any) -> Any:
    """Return a value as JSON can hold it: what is not finite becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_defined(item) for item in value]
    return {key: _defined(item) for key, item in value.items()} if isinstance(value, dict) else value


def _recordio(columns: Columns) -> bytes:
    return answer_records({key: column for key, column in columns.items() if column is not None})


def _joined_csv(columns: Columns) -> bytes:
    return b",".join(_csv(columns).split(b"\n"))


def _bare_json(columns: Columns) -> bytes:
    keys = list(columns)
    rows = (row[0] if keys == [SCORE] else dict(zip(keys, row, strict=True)) for row in _rows(columns))
    return ", ".join(json.dumps(_defined(row)) for row in rows).encode()


class _Npy(ResponseForm):
    """An array of all rows: it begins with the number of rows, so that all must be there first."""

    def parts(self, answers: Iterable[Columns]) -> Iterator[bytes]:
        """Yield the bytes of a response."""
        found = [[column for column in columns.values() if column is not None] for columns in answers]
        arrays = [each[0] if len(each) == 1 else np.column_stack(each) for each in found if each]
        written = io.BytesIO()
        np.save(written, np.concatenate(arrays) if arrays else np.zeros(0, np.float32))
        yield written.getvalue()


CSV = ResponseForm("text/csv", _csv, between=b"\n")
JSON = ResponseForm(
    "application/json", lambda columns: _objects(columns, ", "), b'{"predictions": [', b", ", b"]}"
)
JSON_LINES = ResponseForm("application/jsonlines", lambda columns: _objects(columns, "\n"), between=b"\n")

FORMS: Mapping[str, ResponseForm] = {
    form.content_type: form
    for form in (
        CSV,
        JSON,
        JSON_LINES,
        ResponseForm("application/x-recordio-protobuf", _recordio, holds_text=False),
        _Npy("application/x-npy", lambda _: b"", holds_text=False),
    )
}
"""The content types of answers."""

BATCH_FORMS: Mapping[str, ResponseForm] = {
    **FORMS,
    "text/csv": replace(CSV, end=b"\n"),
    "application/json": replace(JSON_LINES, content_type="application/json", end=b"\n"),
    "application/jsonlines": replace(JSON_LINES, end=b"\n"),
}
"""Those of a batch transform: a line for each record."""

MULTI_MODEL_FORMS: Mapping[str, ResponseForm] = {
    **FORMS,
    "text/csv": ResponseForm("text/csv", _joined_csv, between=b","),
    "application/json": ResponseForm("application/json", _bare_json, b"[", b", ", b"]"),
}
"""Those of an endpoint of several models, as AWS's image has them."""


def choose(accept: str, default: str, forms: Mapping[str, ResponseForm]) -> ResponseForm | None:
    """Return the form that a request accepts most (RFC 9110, 12.5.1), None if there is none.

    Of types that are accepted alike the first counts; `*/*` and no type at all are the default.
    """
    if accept in {"", "*/*"}:
        return forms.get(default)
    if accept in forms:
        return forms[accept]
    for name in _wanted(accept):
        matching = (kind for kind in (default, *forms) if fnmatchcase(kind, name or "*") and kind in forms)
        if found := next(matching, None):
            return forms[found]
    return None


def _wanted(accept: str) -> list[str]:
    """Return the types that a header lists, the most wanted first."""
    wanted: list[tuple[float, str]] = []
    for item in accept.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        values = (
            value for key, _, value in (each.partition("=") for each in parameters) if key.strip() == "q"
        )
        quality = number_of(next(values, "1").strip())
        if quality:
            wanted.append((-quality, name))
    return [name for _, name in sorted(wanted, key=itemgetter(0))]
