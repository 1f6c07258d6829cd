"""Bodies of every form become the rows that pandas and NumPy have, or a sentence that says what is wrong."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file
from tests.recordio import field, framed, record, tensor

from smxgb.errors import UserError
from smxgb.rows import Schema, Signature, UnfitError, body_form, read_body

if TYPE_CHECKING:
    import numpy.typing as npt

    from smxgb.rows import BodyForm

NAMED = Signature(Schema(("a", "b", "c"), invented=False))
UNNAMED = Signature(Schema.unnamed(3))
OF_WORDS = Signature(Schema(("colour", "size"), invented=False, categories={"colour": ("blue", "red")}))

TABLE = pd.DataFrame({"a": [1.5, None, -3e-7], "b": [2.0, 4.0, 1e20], "c": [0.1, 7.0, None]})

LISTS = [[None if np.isnan(value) else value for value in row] for row in TABLE.to_numpy().tolist()]


def rows(
    body: bytes | str, form: BodyForm, signature: Signature = UNNAMED, *, label_first: bool = False
) -> npt.NDArray[np.float32]:
    data = body.encode() if isinstance(body, str) else body
    parts = list(read_body(data, len(data), form, signature, label_first=label_first))
    dense = [_dense(part) if isinstance(part, csr_matrix) else part for part in parts]
    return np.concatenate(dense) if dense else np.zeros((0, signature.width), np.float32)


def _dense(part: csr_matrix) -> npt.NDArray[np.float32]:
    filled = np.full(part.shape, np.nan, np.float32)
    for row in range(part.shape[0]):
        filled[row, part[row].indices] = part[row].data
    return filled


def parquet(frame: pd.DataFrame) -> bytes:
    written = io.BytesIO()
    frame.to_parquet(written)
    return written.getvalue()


def npy(array: npt.NDArray[np.float64]) -> bytes:
    written = io.BytesIO()
    np.save(written, array)
    return written.getvalue()


BODIES: dict[str, tuple[BodyForm, bytes]] = {
    "csv": ("csv", TABLE.to_csv(index=False, header=False).encode()),
    "csv with quotes": ("csv", TABLE.to_csv(index=False, header=False, quoting=1).encode()),
    "csv with semicolons": ("csv", TABLE.to_csv(index=False, header=False, sep=";").encode()),
    "csv with NA": ("csv", TABLE.to_csv(index=False, header=False, na_rep="NA").encode()),
    "csv with carriage returns": (
        "csv",
        TABLE.to_csv(index=False, header=False, lineterminator="\r\n").encode(),
    ),
    "parquet": ("parquet", parquet(TABLE)),
    "npy": ("npy", npy(TABLE.to_numpy())),
    "npy by columns": ("npy", npy(np.asfortranarray(TABLE.to_numpy()))),
    "json": ("json", TABLE.to_json(orient="values", double_precision=15).encode()),
    "instances": ("json", f'{{"instances": {TABLE.to_json(orient="values", double_precision=15)}}}'.encode()),
    "rows by name": ("json", TABLE[["c", "a", "b"]].to_json(orient="records", double_precision=15).encode()),
    "json lines": (
        "jsonlines",
        "\n".join(json.dumps({"features": row}) for row in LISTS).encode(),
    ),
    "json lines of Clarify": (
        "jsonlines",
        "\n".join(json.dumps({"data": {"features": {"values": row}}}) for row in LISTS).encode(),
    ),
    "dense records": (
        "recordio-protobuf",
        framed(record(tensor(row, "d"), tensor([0])) for row in TABLE.to_numpy()),
    ),
    "records without labels": (
        "recordio-protobuf",
        framed(field(1, field(1, b"values") + field(2, tensor(row))) for row in TABLE.to_numpy()),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_rows_are_those_of_the_table(name: str) -> None:
    form, body = BODIES[name]
    assert np.array_equal(rows(body, form, NAMED), TABLE.to_numpy(np.float32), equal_nan=True)


def test_named_columns_stand_in_any_order_and_others_are_passed_over() -> None:
    frame = TABLE.assign(when="2024-01-01", y=1)[["c", "when", "b", "y", "a"]]
    for form, body in (("csv", frame.to_csv(index=False).encode()), ("parquet", parquet(frame))):
        assert np.array_equal(rows(body, form, NAMED), TABLE.to_numpy(np.float32), equal_nan=True)  # type: ignore[arg-type]


def test_a_header_of_other_names_is_no_row_for_a_model_without_names() -> None:
    assert rows("x,y,z\n1,2,3\n", "csv").tolist() == [[1, 2, 3]]


def test_words_become_the_codes_of_the_model_and_unknown_ones_are_missing() -> None:
    expected = [[1, 2], [0, 3], [np.nan, 4]]
    for form, body in (
        ("csv", "red,2\n blue ,3\ngreen,4\n"),
        ("csv", "size,colour\n2,red\n3,blue\n4,green\n"),
        ("json", '[["red", 2], ["blue", 3], ["green", 4]]'),
        ("jsonlines", '{"colour": "red", "size": 2}\n["blue", 3]\n{"features": ["green", "4"]}\n'),
        ("parquet", parquet(pd.DataFrame({"colour": ["red", "blue", "green"], "size": [2, 3, 4]}))),
    ):
        data = body.encode() if isinstance(body, str) else body
        assert np.array_equal(rows(data, form, OF_WORDS), np.array(expected, np.float32), equal_nan=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("first", [0, 1])
def test_the_index_base_of_libsvm_is_that_of_the_model(first: int) -> None:
    written = io.BytesIO()
    table = np.array([[0, 2, 3], [0, 5, 0], [1, 0, 0.5]])
    dump_svmlight_file(table, [0, 1, 0], written, zero_based=first == 0)
    signature = Signature(Schema(("f0", "f1", "f2"), invented=True, first_index=first))
    expected = np.where(table == 0, np.nan, table).astype(np.float32)
    assert np.array_equal(rows(written.getvalue(), "libsvm", signature), expected, equal_nan=True)


def test_lines_of_libsvm_without_features_are_rows_too() -> None:
    assert rows("0 1:2\n1\n0\n", "libsvm").shape == (3, 3)


def test_lines_of_libsvm_need_no_label() -> None:
    assert np.array_equal(
        rows("0:1 2:3\n1:4\n", "libsvm"), rows("0 0:1 2:3\n0 1:4\n", "libsvm"), equal_nan=True
    )


def test_a_label_is_dropped_where_the_content_type_says_so() -> None:
    assert rows("9,1,2,3\n8,4,5,6\n", "csv", label_first=True).tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("form", "body", "parts"),
    [
        ("csv", "1,2\n", ("line 1, has 2 columns", "3 features")),
        ("csv", "1,2,3,4\n", ("has 4 columns", "3 features", "label_size=1")),
        ("csv", "a,b,x\n1,2,3\n", ("lacks 'c'",)),
        ("json", "[[1, 2]]", ("row 1, has 2 columns",)),
        ("jsonlines", '{"a": 1, "b": 2, "c": 3}\n{"a": 1}\n', ("row 2: it lacks 'b', 'c'",)),
        ("npy", npy(np.zeros((2, 5))), ("has 5 columns",)),
        ("parquet", parquet(TABLE[["a", "b"]]), ("lacks 'c'",)),
        ("libsvm", "0 1:2\n0 3:1\n", ("row 2", "index 3", "0 to 2")),
        ("recordio-protobuf", framed([record(tensor([1, 2]), tensor([0]))]), ("record 1", "3 values")),
    ],
)
def test_rows_of_other_features_do_not_fit(form: BodyForm, body: bytes | str, parts: tuple[str, ...]) -> None:
    with pytest.raises(UnfitError) as raised:
        rows(body, form, NAMED)
    assert all(part in str(raised.value) for part in parts), str(raised.value)


@pytest.mark.parametrize(
    ("form", "body", "parts"),
    [
        ("csv", "1,2,3\n1,x,3\n", ("line 2", "column 1", "'x' is not a number")),
        ("csv", "1,2,3\n1,2\n", ("line 2", "2 values")),
        ("csv", "1,inf,3\n", ("line 1", "column 1", "infinite")),
        ("csv", b"PAR1\0\0", ("is Parquet",)),
        ("csv", b"1,2,\0\n", ("bytes that are not text",)),
        ("json", '{"instances": [[1, 2, 3', ("is not JSON", "line 1")),
        ("json", '[[1, {"x": 1}, 3]]', ("row 1, column 1", "an object")),
        ("json", "[[1, 2, 3], 5]", ("row 2", "a list of values")),
        ("json", "[" * 100_000, ("is not JSON",)),
        ("jsonlines", "[1, 2, 3]\n[1, 2,\n", ("row 2 is not JSON",)),
        ("npy", npy(np.zeros((3, 3)))[:-8], ("damaged or cut off",)),
        ("npy", b"\x93NUMPY\x01\x00\x02\x00xx", ("not an array",)),
        ("npy", npy(np.full((1, 3), np.inf)), ("row 1", "infinite")),
        ("parquet", b"PAR1 and no more", ("can't be read as Parquet",)),
        ("libsvm", "0 1:x\n", ("line 1", "'1:x' is not index:value")),
        ("libsvm", "1,2,3\n", ("text/csv",)),
        ("recordio-protobuf", b"abcdefgh", ("record 1", "magic number")),
        (
            "recordio-protobuf",
            framed([record(tensor([1, 2, 3]), tensor([0]))])[:-4],
            ("record 1", "ends inside"),
        ),
        ("csv", b"\x1f\x8b\x08\x00\x00", ("is compressed",)),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    form: BodyForm, body: bytes | str, parts: tuple[str, ...]
) -> None:
    with pytest.raises(UserError) as raised:
        rows(body, form)
    assert all(part in str(raised.value) for part in parts), str(raised.value)


def test_infinite_values_are_missing_where_training_took_them_so() -> None:
    signature = Signature(Schema.unnamed(2), infinity="missing")
    for form, body in (
        ("csv", b"1,inf\n"),
        ("npy", npy(np.array([[1, np.inf]]))),
        ("json", b"[[1, Infinity]]"),
    ):
        assert np.array_equal(rows(body, form, signature), [[1, np.nan]], equal_nan=True)  # type: ignore[arg-type]


def test_a_large_body_comes_in_parts_of_bounded_size() -> None:
    values = np.random.default_rng(0).normal(size=(60_000, 3)).astype(np.float32)
    body = pd.DataFrame(values).to_csv(index=False, header=False).encode()
    parts = list(read_body(io.BytesIO(body), len(body), "csv", UNNAMED))
    assert len(parts) > 1
    assert np.array_equal(np.concatenate(parts), values)


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (b"1,2,3\n", "csv"),
        (b"0 1:2 3:4\n", "libsvm"),
        (b'{"instances": [[1]]}', "json"),
        (b'{"features": [1]}\n{"features": [2]}\n', "jsonlines"),
        (b"[[1, 2],\n[3, 4]]", "json"),
        (b"\x93NUMPY\x01\x00", "npy"),
        (b"PAR1", "parquet"),
    ],
)
def test_a_body_without_a_content_type_shows_its_form(head: bytes, form: BodyForm) -> None:
    assert body_form(head) == form


def test_numbers_of_json_are_rounded_once() -> None:
    text = "1.00000005960464477540"  # as a 64-bit float it lies in the middle of two 32-bit ones
    expected = np.nextafter(np.float32(1), np.float32(2))
    assert rows(f"[[{text}, 1, 2]]", "json")[0, 0] == expected
    assert rows(f"{text},1,2\n", "csv")[0, 0] == expected
