"""Bodies: rows to predict, in the formats of requests, as arrays. Cells mean what they mean in a training."""

from __future__ import annotations

from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Literal

from smxgb.errors import UserError
from smxgb.job import FORMATS, is_compressed
from smxgb.rows.bodies.body import SOURCE, Body, Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, BinaryIO

    import numpy.typing as npt

    from smxgb.rows.signature import Signature

__all__ = ["BODY_TYPES", "BodyForm", "Rows", "answer_records", "body_form", "read_body"]

type BodyForm = Literal["csv", "libsvm", "recordio-protobuf", "parquet", "json", "jsonlines", "npy"]

BODY_TYPES: Mapping[str, BodyForm] = {
    "text/csv": "csv",
    "csv": "csv",
    "text/libsvm": "libsvm",
    "text/x-libsvm": "libsvm",
    "libsvm": "libsvm",
    "application/x-recordio-protobuf": "recordio-protobuf",
    "recordio-protobuf": "recordio-protobuf",
    "application/x-parquet": "parquet",
    "application/vnd.apache.parquet": "parquet",
    "parquet": "parquet",
    "application/json": "json",
    "application/jsonlines": "jsonlines",
    "application/x-jsonlines": "jsonlines",
    "application/jsonl": "jsonlines",
    "application/x-npy": "npy",
}
"""The content types of bodies, those of AWS's XGBoost image first."""

_READERS: Mapping[BodyForm, tuple[str, str]] = {
    "csv": ("csv", "csv_rows"),
    "libsvm": ("libsvm", "libsvm_rows"),
    "recordio-protobuf": ("recordio", "recordio_rows"),
    "parquet": ("parquet", "parquet_rows"),
    "json": ("json", "json_rows"),
    "jsonlines": ("json", "jsonlines_rows"),
    "npy": ("npy", "npy_rows"),
}
"""The module and the function that reads a form, imported when the first body of it comes."""

_NPY = b"\x93NUMPY"


def body_form(head: bytes) -> BodyForm:
    """Return the form of a body without a content type, by its first bytes."""
    if head.startswith(_NPY):
        return "npy"
    start = head.lstrip()
    if start.startswith((b"{", b"[")):
        line, _, rest = start.partition(b"\n")
        return "jsonlines" if line.rstrip().endswith(b"}") and rest.strip() else "json"
    return next((form for form, known in FORMATS.items() if known.begins(head)), "csv")


def answer_records(columns: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return RecordIO-protobuf with a record for each row of an answer (`recordio.answer_records`)."""
    from smxgb.rows.bodies import recordio  # noqa: PLC0415 - protobuf is imported when it is needed

    return recordio.answer_records(columns)


def read_body(
    data: bytes | BinaryIO, size: int, form: BodyForm, signature: Signature, *, label_first: bool = False
) -> Iterator[Rows]:
    """Yield the rows of a body, in order, as a model of this signature predicts them.

    Args:
        data: The bytes, or a stream of `size` bytes that stands at its beginning.
        size: The number of bytes.
        form: How the rows are written.
        signature: What the model needs.
        label_first: Whether a label stands before the features, to be passed over.

    Raises:
        UserError: With what is wrong with the body, and where.
    """
    body = Body(BytesIO(data) if isinstance(data, bytes) else data, size)
    if is_compressed(body.head()[:16]):
        raise UserError(f"{SOURCE} is compressed: send it as it is.")
    module, name = _READERS[form]
    read = getattr(import_module(f"smxgb.rows.bodies.{module}"), name)
    yield from read(body, signature, label_first=label_first)
