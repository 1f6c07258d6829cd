"""Artefacts: the model under /opt/ml/model, and the report files under /opt/ml/output/data."""

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
from smxgb.matrix import internal_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from smxgb.batch import Schema
    from smxgb.environment import Paths

MODEL_NAME = "xgboost-model"
"""The name that AWS's serving images look for. They try to load every file beside it, so there is no
other."""
IMPORTANCES = ("gain", "weight", "cover", "total_gain", "total_cover")


def prepare_folders(paths: Paths) -> None:
    """Make the folders of the results, and see that they can be written: before the work, not after it.

    Raises:
        PlatformError: If a result could not be written.
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
    """Write the model as UBJSON beside its place and load it back; `publish_model` then gives it its name.

    Feature names of our making are left out, so that the model takes a plain NumPy array as AWS's models do.

    Raises:
        AlgorithmError: If what was written does not load as the model it was.
    """
    booster.feature_names = None if schema.invented else list(schema.names)
    if schema.invented:
        booster.feature_types = None
    staged = folder / f".smxgb-{MODEL_NAME}"
    with _written(staged, "wb") as stream:
        stream.write(booster.save_raw("ubj"))
    loaded = xgb.Booster(model_file=bytearray(staged.read_bytes()))
    found, expected = ((each.num_boosted_rounds(), each.num_features()) for each in (loaded, booster))
    if found != expected:
        raise AlgorithmError("the model that was written does not load as the model that was trained.")
    return staged


def publish_model(staged: Path) -> Path:
    """Give a staged model its name; return its path."""
    return staged.replace(staged.with_name(MODEL_NAME))


def write_report(report: Mapping[str, object], folder: Path) -> None:
    """Write metrics.json. An undefined metric (nan) becomes null, for JSON has no other word for it."""
    with _replacing(folder / "metrics.json") as stream:
        json.dump(_defined(report), stream, indent=2)
        stream.write("\n")


def write_importance(booster: xgb.Booster, schema: Schema, folder: Path, *, linear: bool) -> None:
    """Write feature_importance.csv: a row for each feature, the most important first.

    Trees have the five scores of XGBoost; a linear model has `weight`, the sizes of its coefficients.
    """
    kinds = ("weight",) if linear else IMPORTANCES
    scores = [booster.get_score(importance_type=kind) for kind in kinds]
    rows = [
        (name, *(_size(score.get(internal, 0.0)) for score in scores))
        for name, internal in zip(schema.names, internal_names(schema), strict=True)
    ]
    rows.sort(key=itemgetter(1), reverse=True)
    with _replacing(folder / "feature_importance.csv") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["feature", *kinds])
        writer.writerows(rows)


def _size(score: float | list[float]) -> float:
    return sum(abs(value) for value in score) if isinstance(score, list) else abs(score)


def _defined(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _defined(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_defined(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def _replacing(path: Path) -> Iterator[IO[str]]:
    """Open a file beside `path` that takes its place once it is complete."""
    written = path.with_name(f".smxgb-{path.name}")
    with _written(written, "w") as stream:
        yield stream
    written.replace(path)


@contextmanager
def _written(path: Path, mode: str) -> Iterator[IO[Any]]:
    """Open a file to write; it is on the disk afterwards. An error names it, as those of writes do not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open(mode, newline="" if mode == "w" else None) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        error.filename = str(path)
        raise
