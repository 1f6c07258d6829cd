"""Artefacts: the model under /opt/ml/model, and the report files under /opt/ml/output/data.

Each is written under an unfinished name beside its final one. The supervisor renames it once the job has
succeeded (`smxgb.supervision.publishing`).
"""

from __future__ import annotations

import csv
import json
import math
import os
import tempfile
from contextlib import contextmanager
from operator import itemgetter
from typing import IO, TYPE_CHECKING, Any

import xgboost as xgb

from smxgb.errors import AlgorithmError, PlatformError
from smxgb.supervision.publishing import create, unfinished
from smxgb.training.matrix import internal_names
from smxgb.training.model import predict_alike

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from smxgb.environment import Paths
    from smxgb.rows import Schema

MODEL_NAME = "xgboost-model"
"""The name that AWS's serving images look for. They try to load every file of its folder, so it holds no
other file."""
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that spreadsheets take for a formula."""
IMPORTANCES = ("gain", "weight", "cover", "total_gain", "total_cover")


def prepare_folders(paths: Paths) -> None:
    """Make the folders of the artefacts, and write to them: a mistake shows before the work, not after it.

    Raises:
        PlatformError: If an artefact could not be written.
    """
    for folder in (paths.model, paths.output_data):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except (FileExistsError, NotADirectoryError):
            raise PlatformError(
                f"{folder} can't be made a folder: a file is in its place, or in that of a folder above. "
                "Remove the file."
            ) from None
        except OSError as error:
            error.filename = str(folder)
            raise
    model = paths.model / MODEL_NAME
    if model.is_dir():
        raise PlatformError(f"{model} is a folder, in the place of the model's file: remove it.")


def stage_model(booster: xgb.Booster, schema: Schema, folder: Path) -> Path:
    """Write the model to `folder` as UBJSON under an unfinished name, and load it back; return the path.

    Invented feature names are left out, so that the model takes a plain NumPy array as AWS's models do. A
    model of libsvm files keeps the index of their first feature, 0 or 1, in its attribute `libsvm_indexing`.

    Raises:
        AlgorithmError: If the file does not load as the model that was trained.
    """
    booster.feature_names = None if schema.invented else list(schema.names)
    if schema.invented and not schema.categories:
        booster.feature_types = None
    if schema.first_index is not None:
        booster.set_attr(libsvm_indexing=str(schema.first_index))
    staged = unfinished(folder / MODEL_NAME)
    with _written(staged) as stream:
        stream.write(booster.save_raw("ubj"))
    loaded = xgb.Booster(model_file=bytearray(staged.read_bytes()))
    found, expected = ((each.num_boosted_rounds(), each.num_features()) for each in (loaded, booster))
    if found != expected or not predict_alike(loaded, booster):
        raise AlgorithmError("the model that was written does not load as the model that was trained.")
    return staged


def stage_report(report: Mapping[str, object], folder: Path) -> Path:
    """Write metrics.json to `folder` under an unfinished name; return the path.

    An undefined metric (nan) becomes null: JSON has no nan.
    """
    staged = unfinished(folder / "metrics.json")
    with _written(staged, text=True) as stream:
        json.dump(_defined(report), stream, indent=2)
        stream.write("\n")
    return staged


def stage_importance(booster: xgb.Booster, schema: Schema, folder: Path, *, linear: bool) -> Path:
    """Write feature_importance.csv to `folder` under an unfinished name; return the path.

    It has a row for each feature, the most important first. A name that a spreadsheet would take for a
    formula has an apostrophe before it. Trees have the five scores of XGBoost; a linear model has `weight`,
    the sum of the absolute coefficients.
    """
    kinds = ("weight",) if linear else IMPORTANCES
    scores = [booster.get_score(importance_type=kind) for kind in kinds]
    rows = [
        (_inert(name), *(_size(score.get(internal, 0.0)) for score in scores))
        for name, internal in zip(schema.names, internal_names(schema), strict=True)
    ]
    rows.sort(key=itemgetter(1), reverse=True)
    staged = unfinished(folder / "feature_importance.csv")
    with _written(staged, text=True) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["feature", *kinds])
        writer.writerows(rows)
    return staged


def _inert(name: str) -> str:
    """Return a name as a cell that no spreadsheet runs (OWASP, CSV injection)."""
    return f"'{name}" if name.startswith(FORMULAS) else name


def _size(score: float | list[float]) -> float:
    return sum(abs(value) for value in score) if isinstance(score, list) else abs(score)


def _defined(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _defined(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_defined(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def _written(path: Path, *, text: bool = False) -> Iterator[IO[Any]]:
    """Open a new file to write, and flush it to the disk. Errors of writing are given the file's name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with create(path, text=text) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        error.filename = str(path)
        raise
