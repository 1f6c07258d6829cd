"""The model that training goes on from, in the channel `model`: found, read, and asked what it predicts.

SageMaker's `model_uri` puts it there, as the model.tar.gz of an earlier job or as a file.
"""

from __future__ import annotations

import json
import math
import tarfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smxgb.environment import read_json
from smxgb.errors import UserError
from smxgb.job.data_files import find_files
from smxgb.saved_models import check_format, not_a_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from smxgb.environment import Paths
    from smxgb.errors import Mistakes
    from smxgb.settings import Parsed

CHANNEL = "model"
FILE = "xgboost-model"
ARCHIVES = (".tar.gz", ".tgz", ".tar")


@dataclass(frozen=True)
class BaseModel:
    """A trained model; `data` is its UBJSON without the names of its features.

    `place` is what messages call it. `booster` is gblinear or gbtree, `num_class` 0 for one output.
    `features` is the number of features, `names` their names where it has some. `categories` are those of
    each feature, None for a number; empty if all are numbers. `first_index` is what the libsvm files that it
    was trained on call the first feature, None if there were none.
    """

    place: str
    data: bytes
    rounds: int
    objective: str
    booster: str
    num_class: int
    base_score: tuple[float, ...]
    features: int
    names: tuple[str, ...] | None
    categories: tuple[tuple[str, ...] | None, ...] = ()
    first_index: int | None = None

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings that come from the model, where the job does not give them."""
        found: dict[str, object] = {"objective": self.objective}
        if self.num_class:
            found["num_class"] = str(self.num_class)
        if self.booster == "gblinear":
            found["booster"] = self.booster
        return found

    def describe(self) -> str:
        """Return the line of the log that says what training goes on from."""
        return (
            f"{self.place}: training goes on from this model: {self.rounds} rounds, {self.objective}, "
            f"{self.features} features."
        )

    def check(self, parameters: Parsed, mistakes: Mistakes) -> None:
        """Note the settings that differ from the model's: XGBoost would replace these in silence."""
        for name, value in self._differing(parameters):
            mistakes.add(
                f"{parameters.shown.get(name, name)} differs from the {value} of {self.place}: leave "
                f"{name} out, or give a model that was trained with it."
            )
        settings = parameters.settings
        if settings.lambdarank_unbiased:
            mistakes.add(
                "lambdarank_unbiased can't go on from a model, which does not hold the position biases: "
                f"leave out the setting, or the channel '{CHANNEL}'."
            )
        if settings.process_type == "update" and settings.num_round != self.rounds:
            mistakes.add(
                f"process_type=update changes each round of {self.place}, which has {self.rounds}: give "
                f"num_round={self.rounds}."
            )

    def _differing(self, parameters: Parsed) -> Iterator[tuple[str, object]]:
        settings = parameters.settings
        if settings.objective != self.objective:
            yield "objective", self.objective
        if (settings.num_class or 0) != self.num_class:
            yield "num_class", self.num_class or "none"
        if settings.booster and (settings.booster == "gblinear") != (self.booster == "gblinear"):
            yield "booster", self.booster
        given = settings.base_score
        if given and not _are_equal(given, self.base_score):
            yield "base_score", ", ".join(f"{value:g}" for value in self.base_score)


def find_base_model(paths: Paths) -> BaseModel | None:
    """Return the model of the channel `model`, None if there is no such channel.

    Raises UserError if the channel holds none, or none that can be gone on from.
    """
    config = read_json(paths.config / "inputdataconfig.json")
    folder = paths.data / CHANNEL
    if CHANNEL not in config if config else not folder.is_dir():
        return None
    settings = config.get(CHANNEL)
    if isinstance(settings, dict) and settings.get("TrainingInputMode") == "Pipe":
        raise UserError(f"channel '{CHANNEL}': TrainingInputMode='Pipe' can't be: use File for a model.")
    if not folder.is_dir():
        raise UserError(
            f"channel '{CHANNEL}': its folder {folder} does not exist. Each host needs the model: check its "
            "S3 address, and that the channel is FullyReplicated."
        )
    return read_model(*_content(folder))


def _content(folder: Path) -> tuple[bytes, str]:
    """Return the bytes of the model in a channel's folder, and what messages call it."""
    files = [file.path for file in find_files(folder)[0]]
    named = [path for path in files if path.name == FILE]
    archives = [path for path in files if path.name.endswith(ARCHIVES)]
    others = [path for path in files if path.suffix in {".json", ".ubj"}]
    for found in (named, archives, others):
        if len(found) == 1:
            shown = f"channel '{CHANNEL}': {found[0].relative_to(folder)}"
            return (_from_archive(found[0], shown) if found is archives else found[0].read_bytes()), shown
    listed = ", ".join(str(path.relative_to(folder)) for path in files[:5]) or "no file"
    raise UserError(
        f"channel '{CHANNEL}' must hold one {FILE}, or one archive (.tar.gz) with it, and holds {listed}."
    )


def _from_archive(path: Path, shown: str) -> bytes:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.name.rpartition("/")[2] == FILE and (stream := archive.extractfile(member)):
                    return stream.read()
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise UserError(f"{shown} can't be unpacked ({error}): write the archive again.") from None
    raise UserError(f"{shown} holds no {FILE}: give the model.tar.gz of a training job.")


def read_model(data: bytes, place: str) -> BaseModel:
    """Return the model of a file. Raises UserError if it is none; a pickled model is never unpickled."""
    import xgboost as xgb  # noqa: PLC0415 - most jobs have no such model, and start faster

    check_format(data, place)
    try:
        booster = xgb.Booster(model_file=bytearray(data))
    except xgb.core.XGBoostError:
        raise not_a_model(place) from None
    learner = json.loads(booster.save_config())["learner"]
    names, index = booster.feature_names, booster.attr("libsvm_indexing")
    categories = _categories(booster, learner)
    booster.feature_names = booster.feature_types = None
    booster.set_attr(libsvm_indexing=None)
    return BaseModel(
        place,
        bytes(booster.save_raw("ubj")),
        booster.num_boosted_rounds(),
        learner["objective"]["name"],
        learner["gradient_booster"]["name"],
        int(learner["learner_model_param"]["num_class"]),
        tuple(json.loads(learner["learner_model_param"]["base_score"])),
        booster.num_features(),
        tuple(names) if names else None,
        categories,
        int(index) if index else None,
    )


def _categories(booster: Any, learner: Mapping[str, Any]) -> tuple[tuple[str, ...] | None, ...]:
    if learner["gradient_booster"]["name"] == "gblinear":
        return ()
    found = booster.get_categories(export_to_arrow=True).to_arrow() or ()
    each = tuple(None if array is None else tuple(map(str, array.to_pylist())) for _, array in found)
    return each if any(each) else ()


def _are_equal(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Return whether two base scores are equal to the digits that a model's file has."""
    wide, many = (one, other) if len(one) > 1 else (one * len(other), other)
    return len(wide) == len(many) and all(
        math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) for a, b in zip(wide, many, strict=True)
    )
