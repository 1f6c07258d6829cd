"""Random tables as files, the settings that read them, and the model that plain pandas and XGBoost make."""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
import xgboost as xgb
from tests.opt_ml import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    type Cells = list[list[str]]

BOOSTING: Mapping[str, object] = {"max_depth": 4, "eta": 0.7, "lambda": 0.1, "min_child_weight": 0}
ROUNDS = 2
_NAMES = "y label age a b x1 x0 0 1 2 3 4 -1 1.5 true NA nan None index weight f0 f1 A [x] Größe"
NAMES = (
    *_NAMES.split(),
    *("no name", " padded ", "a,b", 'five"', "semi;colon", "a\tb", "a|b", "'q'", "<5", "x\\", "\\N"),
)
_WORDS = "red green blue Red it's Zürich 日本 0 1 007 7 -3 True # % 1-2 no N/A? a|b C:\\dir end\\ \\"
WORDS = (*_WORDS.split(), "a b", "x,y", "x;y", 'say "hi"', '5"', "a\tb")
MISSING = ["", "", "", "", "NA", "nan", "NaN", "null", "N/A", "None", "n/a", "<NA>", "#N/A", "NULL"]
"""What pandas reads as missing, the usual ones more often."""


@dataclass(frozen=True)
class Case:
    """A random table in one or more formats, the settings of the job, and the oracle's trees.

    `trees` is None where pandas or XGBoost can't read the table, `reason` says why. Nobody can tell whether
    the first record is a header where it `may_be_row`: a job that takes it for one must say so.
    """

    sources: Mapping[str, Source]
    settings: Mapping[str, object]
    trees: str | None
    reason: str = ""
    may_be_row: bool = False


@dataclass
class _Table:
    """The cells as text, with a name for each column; `words` and `switches` (booleans) are columns."""

    names: list[str]
    cells: Cells
    words: list[int] = field(default_factory=list)
    switches: list[int] = field(default_factory=list)


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    chance = Random(seed)  # noqa: S311 - not for secrets
    table = _table(chance)
    has_header = chance.random() < 0.75
    settings, chosen = _settings(chance, table, has_header=has_header)
    dialect = _Dialect.drawn(chance)
    text = dialect.text(table, chance, has_header=has_header)
    # Names that could be values of their columns look like a row: the job must be told that they are none.
    is_plain = not has_header or any(map(_is_name, chosen.numbers(table.names)))
    may_be_row = has_header and _are_even(table.names) and chance.random() < 0.5
    settings |= dialect.settings(chance, has_header=has_header, is_plain=is_plain or may_be_row)
    try:
        with warnings.catch_warnings(action="error"):
            frame = dialect.read(text, has_header=has_header, words=chosen.words)
        features, label, weight = chosen.split(frame)
        trees = _trees(features, label, weight)
    except (ValueError, TypeError, IndexError, pd.errors.ParserWarning, xgb.core.XGBoostError) as error:
        return Case({"CSV": _csv(text)}, settings, None, f"{type(error).__name__}: {error}")
    sources = {"CSV": _csv(text)}
    if "csv_header" in settings or is_plain:
        first, second = _parts(chance, table, moved=has_header)
        texts = [dialect.text(part, chance, has_header=has_header) for part in (first, second)]
        sources["two files of CSV"] = Source({"1.csv": texts[0], "2.csv": texts[1]}, "text/csv")
    if has_header:
        sources["Parquet"] = _parquet(frame, chosen.words)
    elif not chosen.are_set and not features.dtypes.eq("category").any():
        sources["libsvm"] = _libsvm(features, label)
    return Case(sources, settings, trees, may_be_row=may_be_row)


def _parts(chance: Random, table: _Table, *, moved: bool) -> tuple[_Table, _Table]:
    """Cut a table in two, the second part with its columns in another order if they may be `moved`."""
    cut, order = chance.randint(2, len(table.cells) - 2), list(range(len(table.names)))
    if moved:
        chance.shuffle(order)
    rows = [[row[index] for index in order] for row in table.cells[cut:]]
    return _Table(table.names, table.cells[:cut]), _Table([table.names[index] for index in order], rows)


def trees_of(booster: xgb.Booster) -> str:
    """Return what a model predicts with: trees, with what they were grown on, and the first prediction."""
    learner = json.loads(booster.save_raw("json"))["learner"]
    model = learner["gradient_booster"]["model"]
    return json.dumps([model["trees"], model.get("cats"), learner["learner_model_param"]["base_score"]])


@dataclass(frozen=True)
class _Chosen:
    """What a job's columns are for, by their positions; `are_set` says that settings name some."""

    label: int
    weight: int | None
    dropped: frozenset[int]
    words: frozenset[int]
    are_set: bool

    def numbers(self, row: list[str]) -> list[str]:
        """Return the cells of a row in the columns that must hold numbers."""
        return [cell for position, cell in enumerate(row) if position not in self.dropped | self.words]

    def split(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series, pd.Series | None]:
        """Return features, label and weight; raise ValueError for what is no number."""
        roles = {self.label, *self.dropped, *([] if self.weight is None else [self.weight])}
        features = {}
        for position in range(frame.shape[1]):
            if position not in roles:
                column = frame.iloc[:, position]
                features[position] = _categories(column) if position in self.words else _numbers(column)
        label = _numbers(frame.iloc[:, self.label])
        weight = None if self.weight is None else _numbers(frame.iloc[:, self.weight])
        return pd.DataFrame(features), label, weight


def _is_name(cell: str) -> bool:
    is_number = cell.lstrip("-").replace(".", "").isdecimal()
    return not is_number and cell not in {*MISSING, "\\N", "true"}


def _are_even(names: list[str]) -> bool:
    """Tell whether names are three or more numbers that rise evenly: of others nobody can tell anything."""
    numbers = [int(name) for name in names if name.isdecimal()]
    return len(numbers) == len(names) > 2 and len({*np.diff(numbers).tolist()}) == 1


def _numbers(column: pd.Series) -> pd.Series:
    known = column.dropna()
    if column.dtype == object and known.map(type).eq(bool).all():  # booleans, and some are missing
        return column.astype(np.float32)
    if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        raise ValueError(f"{column.name} is text")
    return column.astype(np.float32)


def _categories(column: pd.Series) -> pd.Series:
    words = _words(column)
    found = sorted(words.dropna().unique())
    if found and all(word.removeprefix("-").isdecimal() for word in found):
        found.sort(key=int)
    return words.astype(pd.CategoricalDtype(found)) if found else column.isna() * np.float32(math.nan)


def _words(column: pd.Series) -> pd.Series:
    """Return words as CSV is read: without spaces around, and whole numbers as 1 where all words are such."""
    words = column.str.strip()
    if words.dropna().str.fullmatch(r"-?\d+(\.0*)?").all():
        return words.str.replace(r"\.0*$", "", regex=True)
    if words.dropna().isin([*_SPELLED]).all():
        return words.str.capitalize()
    return words


_SPELLED = ("True", "TRUE", "true", "False", "FALSE", "false")


def _trees(features: pd.DataFrame, label: pd.Series, weight: pd.Series | None) -> str:
    names = [str(name) for name in features.columns]
    features = features.set_axis([f"f{index}" for index in range(len(names))], axis=1)
    matrix = xgb.QuantileDMatrix(features, label, weight=weight, enable_categorical=True)
    return trees_of(xgb.train(dict(BOOSTING), matrix, ROUNDS))


def _table(chance: Random) -> _Table:
    width, rows = chance.randint(2, 7), chance.randint(5, 40)
    names = chance.sample(NAMES, width)
    if chance.random() < 0.1:
        names = [str(number) for number in chance.sample(range(width + 1), width)]
    if chance.random() < 0.1:
        names = [chance.choice(names), *map(str, chance.sample(range(2010, 2022), width - 1))]
    if chance.random() < 0.05:
        first, step = chance.choice((0, 5, 400, 2001)), chance.randint(1, 20)
        names = [str(first + step * index) for index in range(width)]
    kinds = ["number", *(chance.choice(_KINDS) for _ in range(width - 1))]
    if chance.random() < 0.4:
        chance.shuffle(kinds)
    columns = [_column(chance, kind, rows) for kind in kinds]
    words, switches = ([index for index, kind in enumerate(kinds) if kind == n] for n in ("words", "boolean"))
    return _Table(names, [list(row) for row in zip(*columns, strict=True)], words, switches)


_KINDS = [
    "number",
    "number",
    "whole",
    "whole",
    "blanks",
    "words",
    "words",
    "large",
    "zero-one",
    "boolean",
    "odd",
]


def _column(chance: Random, kind: str, rows: int) -> list[str]:
    few = chance.sample(WORDS, chance.randint(1, 5))
    gaps = chance.choice([0, 0, 0.1, 0.5])
    spelled = chance.choice([["True", "False"], ["true", "false"], ["TRUE", "FALSE"]])
    makers = {
        "number": lambda: repr(round(chance.gauss(0, 10), chance.randint(0, 8))),
        "whole": lambda: str(chance.randint(-5, 30)),
        "blanks": lambda: chance.choice(MISSING) if chance.random() < 0.3 else f"{chance.uniform(0, 9):.3g}",
        "words": lambda: chance.choice(MISSING) if chance.random() < gaps else chance.choice(few),
        "large": lambda: str(chance.randint(-(10**9), 10**12)),
        "zero-one": lambda: chance.choice("01"),
        "boolean": lambda: chance.choice(spelled),
        "odd": lambda: chance.choice(
            ["1e3", "1E-3", "+2", ".5", "5.", "-0", "007", "1e-40", "3.0", " 4", "5 "]
        ),
    }
    return [makers[kind]() for _ in range(rows)]


def _settings(chance: Random, table: _Table, *, has_header: bool) -> tuple[dict[str, object], _Chosen]:
    """Return settings that give columns roles, by name or index, and the positions that they mean."""
    width = len(table.names)
    settings: dict[str, object] = {}

    def ref(position: int) -> str | int:
        """Return a reference that means the position: a name is taken before an index."""
        options: list[str | int] = []
        # The text of an absent value names no column, nor do spaces or quotes belong to a name in a setting.
        if has_header and table.names[position] not in {"None", "nan", " padded ", "'q'"}:
            options.append(table.names[position])
        options += [number for number in (position, position - width) if _free(number)]
        return chance.choice(options or [position])

    def _free(number: int) -> bool:
        return not (has_header and str(number) in table.names)

    label, others = 0, list(range(1, width))
    if chance.random() < 0.4:
        label = chance.choice([0, *(index for index in range(width) if index not in table.words)])
        others = [index for index in range(width) if index != label]
        settings["label_column"] = ref(label)
    chance.shuffle(others)
    weight, dropped = None, set[int]()
    if len(others) > 2 and chance.random() < 0.15:
        weight = others.pop()
        settings["weight_column"] = ref(weight)
    while len(others) > 1 and chance.random() < 0.25:
        dropped.add(others.pop())
    if dropped:
        settings["drop_columns"] = _listed(chance, [ref(index) for index in sorted(dropped)])
    words = [index for index in others if index in table.words and chance.random() < 0.9]
    numbers = [index for index in others if index not in table.words + table.switches]
    words += [index for index in numbers if chance.random() < 0.05]
    if words:
        settings["categorical_columns"] = _listed(chance, [ref(index) for index in sorted(words)])
    chosen = _Chosen(label, weight, frozenset(dropped), frozenset(words), bool(settings))
    return settings, chosen


def _listed(chance: Random, refs: list[str | int]) -> str:
    plain = all(not set(str(ref)) & set(",;'\"[]\\| \t") for ref in refs)
    return ",".join(map(str, refs)) if plain and chance.random() < 0.5 else json.dumps(refs)


@dataclass(frozen=True)
class _Dialect:
    """How a table is written as CSV."""

    delimiter: str
    quoting: Literal[0, 1, 2]
    end: str
    escapes: bool
    last_end: bool
    mark: bool

    @classmethod
    def drawn(cls, chance: Random) -> _Dialect:
        quoting: Literal[0, 1, 2] = csv.QUOTE_MINIMAL
        if chance.random() < 0.3:
            quoting = chance.choice((csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC))
        return cls(
            delimiter=chance.choice([",", ",", ",", ",", ";", "\t", "|"]),
            quoting=quoting,
            end=chance.choice(["\n", "\n", "\r\n"]),
            escapes=chance.random() < 0.1,
            last_end=chance.random() < 0.8,
            mark=chance.random() < 0.1,
        )

    def text(self, table: _Table, chance: Random, *, has_header: bool) -> bytes:
        """Return the table as a file."""
        buffer = io.StringIO()
        writer = csv.writer(
            buffer,
            delimiter=self.delimiter,
            quoting=self.quoting,
            lineterminator=self.end,
            doublequote=not self.escapes,
            escapechar="\\" if self.escapes else None,
        )
        if has_header:
            writer.writerow(table.names)
        writer.writerows(table.cells)
        text = buffer.getvalue()
        if chance.random() < 0.05:
            text = text.replace(self.end, self.end * 2, chance.randint(1, 3))
        if not self.last_end:
            text = text.removesuffix(self.end)
        return ("\ufeff" if self.mark else "").encode() + text.encode()

    def settings(self, chance: Random, *, has_header: bool, is_plain: bool) -> dict[str, object]:
        """Return the settings that tell a job how the file is written; some of it is left to the job."""
        told: dict[str, object] = {}
        if chance.random() < 0.5 or not is_plain:
            told["csv_header"] = str(has_header).lower()
        if self.delimiter != "," and chance.random() < 0.5:
            told["csv_delimiter"] = "tab" if self.delimiter == "\t" else self.delimiter
        return told

    def read(self, text: bytes, *, has_header: bool, words: frozenset[int]) -> pd.DataFrame:
        """Return the table as pandas reads it, columns of categories as words."""
        header = 0 if has_header else None
        return pd.read_csv(
            io.BytesIO(text),
            sep=self.delimiter,
            header=header,
            index_col=False,
            encoding="utf-8-sig",
            dtype=dict.fromkeys(words, "str"),
        )


def _csv(text: bytes) -> Source:
    return Source({"data.csv": text}, "text/csv")


def _parquet(frame: pd.DataFrame, words: frozenset[int]) -> Source:
    frame = frame.copy()
    for position in words:
        name = frame.columns[position]
        frame[name] = _words(frame[name]).astype("category")
    return Source({"data.parquet": frame.to_parquet(index=False)}, "application/x-parquet")


def _libsvm(features: pd.DataFrame, label: pd.Series) -> Source:
    lines = []
    for target, row in zip(label, features.to_numpy(np.float32), strict=True):
        pairs = [f"{index}:{value!s}" for index, value in enumerate(row) if not math.isnan(value)]
        lines.append(f"{np.float32(target)!s} {' '.join(pairs)}\n")
    return Source({"data.libsvm": "".join(lines).encode()}, "text/libsvm")
