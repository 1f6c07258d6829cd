"""Bad data files: what SageMaker shows as the reason of the failure. One of each kind is a whole job."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.mistakes import COLUMNS, NAMED, ROWS, Mistake, assert_fails, table
from tests.opt_ml import Source, csv, parquet

if TYPE_CHECKING:
    from pathlib import Path

TWICE = io.BytesIO()
pq.write_table(pa.table([[1.0], [2.0], [3.0]], names=["label", "a", "a"]), TWICE)

TABLE = {
    "a header only": Mistake(
        "UserError: channel train has no rows, its files hold column names at most: check its S3 "
        "address and what wrote the files.",
        train=b"label,a,b\n",
        whole=True,
    ),
    "validation without rows": Mistake(
        "UserError: channel validation has no rows, its files hold column names at most: check its "
        "S3 address and what wrote the files.",
        train=NAMED,
        validation=b"label,age,height\n",
    ),
    "blank lines only": Mistake(
        "UserError: channel train: none of its files holds a record.", train=b"\n\n\n"
    ),
    "one column": Mistake(
        "UserError: train/data.csv has 1 column, which leaves no feature beside the label and the "
        "columns that settings name: add feature columns, or set csv_delimiter if the file is CSV "
        "with an unusual one.",
        train=b"1\n0\n1\n",
    ),
    "two columns of one name": Mistake(
        "UserError: train/data.csv has several columns of the same name: 'a'. Give each a name of its own.",
        train=b"label,a,a\n1,2,3\n",
    ),
    "a saved index": Mistake(
        "UserError: train/data.csv: the first column has no name, as in a table that pandas saved "
        "with its index. Leave it out with drop_columns=0, or save the table with index=False.",
        train=b",label,a\n7,1,2\n1,0,3\n",
    ),
    "UTF-16": Mistake(
        "UserError: train/data.csv is written in UTF-16: write it in UTF-8.",
        train=ROWS.decode().encode("utf-16"),
    ),
    "NUL bytes": Mistake(
        "UserError: train/data.csv is not CSV: it holds bytes that are not text.", train=b"1,2,3\n0,\0\0,4\n"
    ),
    "NUL bytes later on": Mistake(
        "UserError: train/data.csv, line 2001, column 1: '\\x00\\x00' is not a number. A missing "
        "value is an empty cell, NA, NaN, null, None or N/A. Encode "
        "other text as numbers, name its column in categorical_columns, or leave it out with drop_columns.",
        train=b"1,2,3\n" * 2000 + b"0,\0\0,4\n",
        whole=True,
    ),
    "Parquet in a CSV channel": Mistake(
        "UserError: train/a is a Parquet file: give its channel the content type application/x-parquet.",
        train=Source({"a": table(COLUMNS)}, "text/csv"),
    ),
    "libsvm in a CSV channel": Mistake(
        "UserError: train/data.csv is libsvm, not CSV (its first line is '1 0:2 1:3'): give its "
        "channel the content type text/libsvm.",
        train=b"1 0:2 1:3\n0 1:4\n",
    ),
    "JSON in a CSV channel": Mistake(
        "UserError: train/data.csv is JSON, not CSV: write its rows as CSV or Parquet.",
        train=b'{"label": 1, "age": 30}\n{"label": 0, "age": 40}\n',
    ),
    "a bad first row of a second file": Mistake(
        "UserError: train/1.csv, line 1, column 1: 'oops' is not a number. A missing value is an empty cell, "
        "NA, NaN, null, None or N/A. Encode other text as numbers, name its column in categorical_columns, "
        "or leave it out with drop_columns. If the file's first record is a header, set csv_header=true.",
        train=csv(ROWS, b"1.5,oops,0.4\n1,2,3\n"),
    ),
    "a header in one channel only": Mistake(
        "UserError: validation/data.csv: its first record (label, age, height) looks like a header, and "
        "train has none: correct the record, or write a header into every file or into none.",
        validation=NAMED,
    ),
    "a header that is asked for and not there": Mistake(
        "UserError: train/data.csv: csv_header=true, but its first record (1, 0.5, 3) holds numbers, no "
        "names: leave out csv_header, or write the names.",
        {"csv_header": "yes"},
    ),
    "values apart by several blanks": Mistake(
        "UserError: train/data.csv: its records hold several blanks in a row, or one at an end, which make "
        "empty values: write one blank, a tab or a comma between two values.",
        train=b"1  0.5  3\n0  0.1  4\n",
    ),
    "a quote that never ends": Mistake(
        "UserError: train/data.csv, line 2, column 1: a quoted field begins that is never closed: "
        "'\"2,4\\n1,2,5\\n'. Correct the quotes.",
        train=b'1,2,3\n0,"2,4\n1,2,5\n',
    ),
    "a header in another encoding": Mistake(
        "UserError: train/data.csv: the header is not UTF-8 (byte 8): write the file in UTF-8.",
        train="label,größe\n1,2\n".encode("latin-1"),
    ),
    "a label column that is not there": Mistake(
        "UserError: label_column=lable: train/data.csv has no column of this name; the nearest is 'label'.",
        {"label_column": "lable"},
        NAMED,
    ),
    "an index beyond the columns": Mistake(
        "UserError: label_column=7: train/data.csv has 3 columns, so an index is one of -3 to 2. If its "
        "first record is a header, set csv_header=true.",
        {"label_column": 7},
    ),
    "a name in a file without names": Mistake(
        "UserError: weight_column=w: train/data.csv has no header with names. Give the column's "
        "index, counted from 0, or set csv_header=true if its first record is a header.",
        {"weight_column": "w"},
    ),
    "no feature left": Mistake(
        "UserError: train/data.csv has 3 columns, which leaves no feature beside the label and the "
        "columns that settings name: add feature columns, or set csv_delimiter if the file is CSV "
        "with an unusual one.",
        {"drop_columns": "age,height"},
        NAMED,
    ),
    "a second file of another width": Mistake(
        "UserError: train/1.csv has 2 columns, train/0.csv has 3: every file of every channel needs"
        " the same columns.",
        train=csv(ROWS, b"1,2\n0,3\n"),
    ),
    "a second file with other names": Mistake(
        "UserError: train/1.csv lacks column 2 ('height') of train/0.csv and has column 2 "
        "('weight'), which train/0.csv does not have: it has 3 columns, train/0.csv has 3. Every file of "
        "every channel needs the same columns, in any order.",
        train=csv(NAMED, b"label,age,weight\n1,2,3\n"),
        whole=True,
    ),
    "validation with a column less": Mistake(
        "UserError: validation/data.csv has 2 columns, train has 3: every file of every channel "
        "needs the same columns.",
        validation=b"1,2\n0,3\n",
    ),
    "validation with other names": Mistake(
        "UserError: validation/data.csv lacks column 2 ('height') of train: it has 2 columns, train"
        " has 3. Every file of every channel needs the same columns, in any order.",
        train=NAMED,
        validation=b"label,age\n1,2\n",
        whole=True,
    ),
    "validation without its label": Mistake(
        "UserError: validation/data.csv lacks column 0 ('label') of train: it has 2 columns, train "
        "has 3. Every file of every channel needs the same columns, in any order.",
        train=NAMED,
        validation=b"age,height\n1,2\n",
    ),
    "no Parquet": Mistake(
        "UserError: train/data.parquet is not a Parquet file: it does not begin with PAR1.",
        train=parquet(ROWS),
    ),
    "a cut off Parquet file": Mistake(
        "UserError: train/data.parquet can't be read as Parquet: it is damaged or cut off. Write or "
        "upload it again.",
        train=parquet(table(COLUMNS)[:-100]),
        whole=True,
    ),
    "a Parquet file with a hole": Mistake(
        "UserError: train/data.parquet can't be read as Parquet: it is damaged or cut off. Write or "
        "upload it again.",
        train=parquet(table(COLUMNS)[:30] + bytes(60) + table(COLUMNS)[90:]),
    ),
    "Parquet without rows": Mistake(
        "UserError: channel train has no rows, its files hold column names at most: check its S3 "
        "address and what wrote the files.",
        train=parquet(table({"label": [], "a": []})),
    ),
    "texts and dates in Parquet": Mistake(
        "UserError: train/data.parquet: columns that hold no numbers: 'name' (string), 'day' "
        "(date32[day]). Integers, floats, decimals and booleans are read. "
        "Encode the others as numbers, name those of words in categorical_columns (or set "
        "enable_categorical=true for all dictionaries), or leave them out with drop_columns=name,day.",
        train=parquet(table(COLUMNS, name=["x", "y"], day=[dt.date(2020, 1, 1)] * 2, n=[Decimal("1.5")] * 2)),
    ),
    "lists in Parquet": Mistake(
        "UserError: train/data.parquet: columns that hold no numbers: 'v' (list<element: double>). "
        "Integers, floats, decimals and booleans are read. "
        "Encode the others as numbers, name those of words in categorical_columns (or set "
        "enable_categorical=true for all dictionaries), or leave them out with drop_columns=v.",
        train=parquet(table(COLUMNS, v=[[1.0], [2.0]])),
    ),
    "two columns of one name in Parquet": Mistake(
        "UserError: train/data.parquet has several columns of the same name: 'a'. Give each a name of "
        "its own.",
        train=parquet(TWICE.getvalue()),
    ),
    "a group of fractions in Parquet": Mistake(
        "UserError: train/data.parquet, row 0, column 1 ('a'): 1.5 is not a group: an integer is needed. "
        "Number the groups with integers: a 32-bit float holds only those below 2^24 exactly, a 64-bit one "
        "those below 2^53.",
        {"objective": "rank:ndcg", "group_column": "a"},
        parquet(table(COLUMNS, a=[1.5, 2.0])),
    ),
    "a Parquet file that lacks a column": Mistake(
        "UserError: train/1.parquet lacks column 2 ('b') of train/0.parquet: it has 2 columns, "
        "train/0.parquet has 3. Every file of every channel needs the same columns, in any order.",
        train=parquet(table(COLUMNS), table({"label": [1.0], "a": [2.0]})),
    ),
    "two bad Parquet files": Mistake(
        "UserError: 2 mistakes. 1. train/1.parquet lacks column 1 ('a'), column 2 ('b') of "
        "train/0.parquet: it has 1 column, train/0.parquet has 3. Every file of every channel needs"
        " the same columns, in any order.",
        train=parquet(table(COLUMNS), table({"label": [1.0]}), table({"a": [2.0]})),
    ),
    "categories": Mistake(
        "UserError: train/data.parquet: columns that hold no numbers: 'c' (dictionary<values=string, "
        "indices=int8, ordered=0>). Integers, floats, decimals and booleans are read. "
        "Encode the others as numbers, name those of words in categorical_columns (or set "
        "enable_categorical=true for all dictionaries), or leave them out with drop_columns=c.",
        train=parquet(pd.DataFrame({"y": [1, 0], "c": pd.Categorical(["a", "b"])}).to_parquet()),
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_bad_file_ends_the_job_with_one_plain_sentence(name: str, tmp_path: Path) -> None:
    assert_fails(TABLE[name], tmp_path)
