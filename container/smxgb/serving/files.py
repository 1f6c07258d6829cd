"""Predictions for files, without HTTP: `smxgb predict`."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from smxgb.errors import Mistakes, UserError
from smxgb.rows import body_form, read_body
from smxgb.serving.answers import answers
from smxgb.serving.model import Ensemble, load_folder, load_model
from smxgb.serving.responses import CSV
from smxgb.wording import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from smxgb.rows import BodyForm

EXTENSIONS: dict[str, BodyForm] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".rec": "recordio-protobuf",
    ".recordio": "recordio-protobuf",
    ".pbr": "recordio-protobuf",
    ".json": "json",
    ".jsonl": "jsonlines",
    ".npy": "npy",
}


@dataclass(frozen=True)
class Prediction:
    """What to predict: the model's file or folder, the files with rows, and where the answers go.

    `output` is None for standard output. `label_first` says that a label stands before the features.
    """

    model: Path
    files: Sequence[Path]
    output: Path | None = None
    label_first: bool = False


def predict_files(prediction: Prediction) -> None:
    """Write a line of CSV for each row of some files, in order.

    Raises:
        UserError: If a file is not there, or has rows that the model can't take.
    """
    mistakes = Mistakes()
    for path in (prediction.model, *prediction.files):
        if not path.exists():
            mistakes.add(f"{printable(str(path))} does not exist.")
    mistakes.raise_any()
    models = _models(prediction.model)
    total = sum(path.stat().st_size for path in prediction.files)
    with ExitStack() as stack:
        output = stack.enter_context(_opened(prediction.output))
        advance = stack.enter_context(_bar(total))
        for path in prediction.files:
            _predict_file(models, path, output, advance, label_first=prediction.label_first)


def _models(path: Path) -> Ensemble:
    return load_folder(path) if path.is_dir() else Ensemble((load_model(path),))


def _predict_file(
    models: Ensemble, path: Path, output: BinaryIO, advance: Callable[[int], object], *, label_first: bool
) -> None:
    size = path.stat().st_size
    with path.open("rb") as stream:
        form = EXTENSIONS.get(path.suffix.lower()) or _form(stream)
        rows = read_body(stream, size, form, models.signature, label_first=label_first)
        before = 0
        try:
            for columns in answers(models, rows, ()):
                output.write(CSV.write(columns) + b"\n")
                place = min(stream.tell(), size) if not stream.closed else size
                advance(place - before)
                before = place
        except UserError as error:
            raise UserError(*(f"{printable(str(path))}: {text}" for text in error.mistakes)) from error
        advance(size - before)


def _form(stream: BinaryIO) -> BodyForm:
    head = stream.read(65_536)
    stream.seek(0)
    return body_form(head)


@contextmanager
def _opened(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with path.open("wb") as stream:
        yield stream


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], object]]:
    """Draw a bar of the bytes that are read, if a person watches; yield what moves it on."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from tqdm import tqdm  # noqa: PLC0415 - only a person needs it

    with tqdm(total=total, unit="B", unit_scale=True, leave=False, file=sys.stderr) as bar:
        yield bar.update
