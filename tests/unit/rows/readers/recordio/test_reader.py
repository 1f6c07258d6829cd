"""RecordIO-protobuf channels: what is read, what is refused, and in which words."""

from __future__ import annotations

import io
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from tests.recordio import field, framed, record, tensor, varint

from smxgb.errors import UserError
from smxgb.job import DataFile
from smxgb.rows.batch import Sparse
from smxgb.rows.readers.recordio import reader, records
from smxgb.rows.readers.recordio.reader import read_blocks
from smxgb.rows.readers.recordio_framing import FramePart, parse_header
from smxgb.rows.readers.streams import Stream

if TYPE_CHECKING:
    from tests.unit.rows.conftest import Data

NAN = float("nan")


def table(columns: dict[object, list[float]]) -> pd.DataFrame:
    return pd.DataFrame(columns).astype(np.float32)


@pytest.mark.parametrize("kind", ["f", "d", "i"])
@pytest.mark.parametrize("label", ["f", "d", "i"])
def test_dense_records_are_columns_whatever_their_numbers(recordio: Data, kind: str, label: str) -> None:
    data = framed(
        [record(tensor([2, -3], kind), tensor([1], label)), record(tensor([0, 5], kind), tensor([0], label))]
    )
    assert_frame_equal(recordio.read(data), table({"f0": [2, 0], "f1": [-3, 5], "<label>": [1, 0]}))


@pytest.mark.parametrize("kind", ["f", "d", "i"])
def test_sparse_records_may_have_no_value_at_all(recordio: Data, kind: str) -> None:
    rows = [((), ()), ((4, -5), (7, 300)), ((), ()), ((6,), (0,))]
    data = framed(record(tensor(values, kind, keys, [1000]), tensor([1])) for values, keys in rows)
    expected = table(
        {0: [NAN, NAN, NAN, 6], 7: [NAN, 4, NAN, NAN], 300: [NAN, -5, NAN, NAN], "<label>": [1] * 4}
    )
    assert_frame_equal(recordio.read(data), expected)


def test_the_shape_says_how_many_features_there_are(recordio: Data) -> None:
    reader = recordio.reader(framed([record(tensor([4], keys=[7], shape=[12]), tensor([1]))]))
    (batch,) = reader.batches()
    assert isinstance(batch, Sparse)
    assert batch.width == 12


def test_a_dense_shape_may_have_several_dimensions(recordio: Data) -> None:
    rows = [record(tensor([1, 2, 3, 4], shape=[2, 2]), tensor([1])), record(tensor([5] * 4), tensor([0]))]
    assert recordio.read(framed(rows))["f3"].tolist() == [4, 5]


def test_the_product_of_a_shape_does_not_overflow(recordio: Data) -> None:
    rows = [record(tensor([4], keys=[7], shape=[2**32, 2**32]), tensor([1]))]
    reader = recordio.reader(framed(rows))
    (batch,) = reader.batches()
    assert isinstance(batch, Sparse)
    assert batch.width == 2**64


def test_keys_need_no_order(recordio: Data) -> None:
    read = recordio.read(framed([record(tensor([4, 5, 6], keys=[7, 1, 3]), tensor([1]))]))
    assert_frame_equal(read, table({1: [5], 3: [6], 7: [4], "<label>": [1]}))


def test_nan_is_missing_and_zero_is_zero(recordio: Data) -> None:
    read = recordio.read(framed([record(tensor([NAN, 0]), tensor([1]))]))
    assert_frame_equal(read, table({"f0": [NAN], "f1": [0], "<label>": [1]}))


def test_a_record_may_carry_its_weight(recordio: Data) -> None:
    data = framed(record(tensor([row]), tensor([1]), weight=tensor([row / 2])) for row in range(3))
    assert recordio.read(data)["<weight>"].tolist() == [0, 0.5, 1]


def test_numbers_that_are_not_packed_are_read_too(recordio: Data) -> None:
    loose = b"".join(varint(1 << 3 | 5) + struct.pack("<f", value) for value in (2.0, 3.0))
    data = framed([record(tensor([1, 4]), tensor([1])), record(field(2, loose), tensor([0]))])
    assert_frame_equal(recordio.read(data), table({"f0": [1, 2], "f1": [4, 3], "<label>": [1, 0]}))


def test_records_may_come_in_parts_and_files(recordio: Data) -> None:
    rows = [record(tensor([row, -row]), tensor([row])) for row in range(100)]
    files = {
        "1": framed(rows[:40], part_bytes=7),
        "2": framed(rows[40:41]),
        "3": framed(rows[41:], part_bytes=13),
    }
    read = recordio.read(files)
    assert read["f1"].tolist() == [-row for row in range(100)]


def test_features_may_be_bounds_weights_or_groups_and_keep_their_places(recordio: Data) -> None:
    for sparse in (False, True):
        keys = [0, 1, 2, 3] if sparse else ()
        data = framed(record(tensor([row, row + 1, 7, row], keys=keys), tensor([0])) for row in (1, 2))
        read = recordio.read({f"{sparse}": data}, lower=0, upper=1, group=2)
        assert read["<lower>"].tolist() == [1, 2]
        assert read["<upper>"].tolist() == [2, 3]
        assert read["<group>"].tolist() == [7, 7]
        assert read[3 if sparse else "f3"].tolist() == [1, 2]
        assert read.drop(columns=["<lower>", "<upper>", "<group>", "<label>"]).notna().sum().sum() == 2


@pytest.mark.parametrize("kind", ["d", "i"])
@pytest.mark.parametrize("keys", [(), (0, 1)])
@pytest.mark.parametrize("builder", ["one", "many"])
def test_numbers_of_groups_are_exact(recordio: Data, kind: str, keys: tuple[int, ...], builder: str) -> None:
    groups = [2**24 + 1, 2**24, -(2**24) - 1]
    weight = {"weight": tensor([1])} if builder == "one" else {}
    data = framed(record(tensor([group, 5], kind, keys), tensor([1]), **weight) for group in groups)
    assert recordio.read(data, group=0)["<group>"].tolist() == groups


@pytest.mark.parametrize(
    ("kind", "group", "shown"),
    [("f", 2**24, "16777216.0"), ("f", 1.5, "1.5"), ("d", 2**53, "9007199254740992.0"), ("d", NAN, "nan")],
)
def test_a_group_that_may_have_been_rounded_is_none(
    recordio: Data, kind: str, group: float, shown: str
) -> None:
    for keys in ((), (0, 1)):
        data = framed([record(tensor([1, 5], kind, keys), tensor([1]))] * 2)
        data += framed([record(tensor([group, 5], kind, keys), tensor([1]))])
        assert recordio.refused({f"{keys}.rec": data}, group=0) == (
            (
                f"train/{keys}.rec, record 3, group: {shown} is not a group: an integer is needed. Number "
                "the groups with integers: a 32-bit float holds only those below 2^24 exactly, a 64-bit one "
                "those below 2^53."
            ),
        )


def test_a_sparse_record_without_its_group_is_refused(recordio: Data) -> None:
    rows = [record(tensor([1, 5], "i", (0, 1)), tensor([1])), record(tensor([5], "i", (1,)), tensor([1]))]
    (said,) = recordio.refused({"a.rec": framed(rows)}, group=0)
    assert said.startswith("train/a.rec, record 2, group: the group is empty: an integer is needed.")


GOOD = record(tensor([1, 2]), tensor([1]))
SPARSE = record(tensor([1], keys=[1], shape=[5]), tensor([1]))
WEIGHED = record(tensor([1, 2]), tensor([1]), weight=tensor([1]))
TWICE = SPARSE + field(1, field(1, b"values") + field(2, tensor([2], keys=[2], shape=[5])))
NO_FEATURES = field(2, field(1, b"values") + field(2, tensor([1])))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            framed([GOOD]) + b"\1" * 8,
            "record 2: it does not begin with RecordIO's magic number 0xced7230a but with",
        ),
        (framed([GOOD] * 3)[:-9], "record 3: the file ends inside it. Write or upload it again."),
        (framed([GOOD] * 2) + b"\x0a\x23", "record 3: the file ends inside it."),
        (
            framed([GOOD, GOOD], 20)[: -len(framed([GOOD], 20)) // 2 * 2 - 20],
            "record 1: the file ends inside it.",
        ),
        (framed([GOOD, b"\xff\xff\xff"]), "record 2: it is not a record of SageMaker's protobuf schema."),
        (
            framed([GOOD, field(2, field(1, b"values"))]),
            "record 2: its features hold nothing, and 'values' is",
        ),
        (
            framed([GOOD, field(1, field(1, b"vals"))]),
            "record 2: its features hold only 'vals', and 'values' is needed",
        ),
        (
            framed([GOOD, record(field(9, field(1, b"jpg")), tensor([1]))]),
            "record 2: its features are bytes; a",
        ),
        (framed([GOOD, record(tensor([1, 2]), tensor([]))]), "record 2: it has no label, or more than one."),
        (
            framed([GOOD, record(tensor([1, 2]), tensor([1, 2]))]),
            "record 2: it has no label, or more than one.",
        ),
        (
            framed([GOOD, record(tensor([1, 2, 3]), tensor([1]))]),
            "record 2: it does not have 2 values, as the channel's",
        ),
        (
            framed([GOOD, record(tensor([1, 2], shape=[3]), tensor([1]))]),
            "record 2: its shape is 3, and it has 2 values: give it all of them.",
        ),
        (
            framed([record(tensor([1, 2], shape=[2**32, 2**32]), tensor([1]))]),
            "record 1: its shape is 4294967296 x 4294967296, and it has 2 values",
        ),
        (
            framed([SPARSE, TWICE, NO_FEATURES]),
            "record 3: its features hold nothing, and 'values' is needed.",
        ),
        (
            framed([WEIGHED, WEIGHED, GOOD]),
            "record 3: it has no weight, those before it have one: give each record one, or none.",
        ),
        (
            framed([WEIGHED, record(tensor([1, 2]), b"", weight=tensor([1]))]),
            "record 2: its label is empty; a tensor of numbers is needed.",
        ),
        (
            framed([GOOD, field(2, field(1, b""))]),
            "record 2: its features hold nothing, and 'values' is needed.",
        ),
        (
            framed([GOOD, field(1, field(1, b"values") + field(2, tensor([1, 2]))) + field(2, b"")]),
            "record 2: its label holds only '', and 'values' is needed.",
        ),
        (
            framed([SPARSE, record(tensor([1, float("inf"), 2], keys=[4, 2, 0]), tensor([1]))]),
            "record 2, key 2: inf is infinite, or beyond a 32-bit float",
        ),
        (
            framed([GOOD, SPARSE]),
            "record 2: it is sparse; the channel's first record is dense, so all must be.",
        ),
        (
            framed([SPARSE, GOOD]),
            "record 2: its keys and values differ in number; the channel's first record is",
        ),
        (
            framed([SPARSE, record(tensor([1], keys=[5], shape=[5]), tensor([1]))]),
            "record 2: it has a key above 4, the largest that its shape allows.",
        ),
        (
            framed([record(tensor([1], keys=[2**31]), tensor([1]))]),
            "record 1: it has a key above 2147483647, the largest there can be.",
        ),
        (framed([SPARSE, record(tensor([1, 2], keys=[3, 3]), tensor([1]))]), "record 2: it has a key twice."),
        (
            framed([GOOD, record(tensor([1, 2]), tensor([NAN]))]),
            "record 2, label: nan is not a label: a finite",
        ),
        (
            framed([GOOD, record(tensor([1, 1e300], "d"), tensor([1]))]),
            "record 2, f1: inf is infinite, or beyond",
        ),
        (
            framed([GOOD, record(tensor([1, 2]), tensor([1]), weight=tensor([1]))]),
            "record 2: it has a weight, those before it have none: give each record one, or none.",
        ),
    ],
)
def test_what_can_not_be_read_names_the_record(recordio: Data, data: bytes, said: str) -> None:
    (found,) = recordio.refused({"a.rec": data})
    assert found.removeprefix("train/a.rec, ").startswith(said)


def test_a_weight_that_a_whole_block_lacks_is_missed_in_its_first_record(
    recordio: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_blocks, "__defaults__", (len(framed([WEIGHED])),))
    assert recordio.refused({"a.rec": framed([WEIGHED, GOOD])}) == (
        (
            "train/a.rec, record 2: it has no weight, the channel's first record has one: give each record "
            "one, or none."
        ),
    )


def test_the_number_of_a_late_record_is_right(recordio: Data) -> None:
    rows = [record(tensor([0.0] * 100), tensor([1]))] * 6000
    rows[5000] = record(tensor([0.0] * 99), tensor([1]))
    assert recordio.refused(framed(rows))[0].startswith(
        "train/a.recordio-protobuf, record 5001: it does not have 100"
    )


def test_records_of_one_build_are_read_at_once(recordio: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_one_by_one", None)
    for rows in ([GOOD] * 9, [SPARSE, record(tensor([], shape=[5]), tensor([1]))] * 9):
        assert len(recordio.read(framed(rows))) == len(rows)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    data=st.data(),
    kind=st.sampled_from("fdi"),
    part_bytes=st.sampled_from([5, 64, 1 << 20]),
    size=st.sampled_from([30, 200, 1 << 20]),
)
def test_what_another_writer_writes_comes_back(
    recordio: Data, data: st.DataObject, kind: str, part_bytes: int, size: int
) -> None:
    sparse = data.draw(st.booleans(), label="sparse")
    numbers = {
        "f": st.floats(width=32, allow_nan=False, allow_infinity=False),
        "d": st.floats(-1e38, 1e38),
        "i": st.integers(-(2**31), 2**31 - 1),
    }
    width = data.draw(st.integers(1, 5), label="width")
    row = st.lists(numbers[kind], min_size=width, max_size=width)
    rows = data.draw(st.lists(row, min_size=1, max_size=20), label="rows")
    present = [data.draw(st.lists(st.booleans(), min_size=width, max_size=width)) for _ in rows]
    if not sparse:
        present = [[True] * width for _ in rows]
    written = []
    for values, has in zip(rows, present, strict=True):
        keys = [key for key in range(width) if has[key]] if sparse else ()
        kept = [values[key] for key in range(width) if has[key]]
        written.append(record(tensor(kept, kind, keys, [width]), tensor([1])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_blocks, "__defaults__", (size,))
        read = recordio.read(framed(written, part_bytes)).drop(columns="<label>")
    expected = np.where(np.array(present), np.array(rows, np.float64), np.nan).astype(np.float32)
    columns = range(width) if sparse else [f"f{index}" for index in range(width)]
    assert np.array_equal(read.reindex(columns=list(columns)).to_numpy(), expected, equal_nan=True)


def test_each_part_of_a_record_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def noted(data: bytes, offset: int, *arguments: Any, **options: Any) -> FramePart:
        looked.append(offset)
        return parse_header(data, offset, *arguments, **options)

    monkeypatch.setattr(reader, "parse_header", noted)
    long = bytes(range(256)) * 500
    data = framed([long, long], 64)
    stream = Stream("a", io.BytesIO(data), DataFile(Path("a"), len(data)))
    assert [record for block in read_blocks(stream, 512) for record in block.records] == [long, long]
    # Each of the 2 x 2000 parts, and those once more that the end of a chunk cuts.
    assert len(looked) < 2 * 2000 + len(data) / 512 + 2


def test_a_record_has_a_limit(recordio: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LONGEST_RECORD", 1 << 20)
    long = b"x" * (1 << 20) + b"x"
    for part_bytes in (1 << 28, 1000):
        [text] = recordio.refused(framed([GOOD, long], part_bytes))
        assert text.startswith("train/a.recordio-protobuf, record 2: it has more than 1 MB.")


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_bytes_are_read_or_refused(recordio: Data, data: st.DataObject) -> None:
    good = bytearray(framed([GOOD, GOOD] if data.draw(st.booleans()) else [SPARSE, SPARSE]))
    match data.draw(st.sampled_from(["random", "framed", "spoiled"])):
        case "random":
            content = data.draw(st.binary(min_size=1, max_size=200))
        case "framed":
            content = framed(data.draw(st.lists(st.binary(max_size=60), min_size=1, max_size=4)))
        case _:
            for _ in range(data.draw(st.integers(1, 3))):
                good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
            content = bytes(good)
    with suppress(UserError):
        assert np.isfinite(recordio.read(content)["<label>"]).all()
