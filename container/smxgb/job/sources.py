"""Sources: where the hyperparameters and channels of a job come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.environment import read_json
from smxgb.errors import UserError
from smxgb.job.channels import find_channels
from smxgb.settings import parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smxgb.environment import Paths
    from smxgb.errors import Mistakes
    from smxgb.job.base_model import BaseModel
    from smxgb.job.channels import Channels
    from smxgb.settings import Parsed


@dataclass(frozen=True)
class Sources:
    """Where a job's hyperparameters and channels come from, if not from where SageMaker puts them.

    `hyperparameters` is a file, `channels` has the folder of each channel, and `settings` are hyperparameters
    that stand in no file.
    """

    hyperparameters: Path | None = None
    channels: Mapping[str, Path] | None = None
    settings: Mapping[str, object] | None = None


SAGEMAKER = Sources()
"""Everything comes from where SageMaker puts it."""


def read_settings(
    paths: Paths,
    sources: Sources,
    mistakes: Mistakes | None = None,
    base: BaseModel | None = None,
) -> Parsed:
    """Return the job's settings; what they do not say comes from the model that training goes on from.

    Raises UserError for a file that can't be read, and for what is wrong with the settings unless `mistakes`
    is there to note that.
    """
    given = read_hyperparameters(paths, sources)
    if base is None:
        return parse(given, mistakes)
    return parse({**base.settings, **given}, mistakes, has_model=True)


def read_hyperparameters(paths: Paths, sources: Sources) -> Mapping[str, object]:
    """Return the hyperparameters as given. A file that `sources` names must exist, SageMaker's need not.

    Raises UserError for a file that can't be read.
    """
    if sources.settings is not None:
        return sources.settings
    named = sources.hyperparameters
    if named is not None and not named.exists():
        raise UserError(f"there is no file {named}: give the path of a JSON file with the hyperparameters.")
    return read_json(named or paths.config / "hyperparameters.json")


def read_channels(paths: Paths, sources: Sources, *, alone: bool) -> Channels:
    """Return the job's channels; with several hosts, `alone` false, one may have no file on this host.

    Raises UserError if there is no channel, and for what is wrong with those that there are.
    """
    if sources.channels is not None:
        return find_channels({name: {} for name in sources.channels}, sources.channels, alone=alone)
    config = read_json(paths.config / "inputdataconfig.json")
    names = sorted(config) or sorted(folder.name for folder in paths.data.glob("*") if folder.is_dir())
    if not names:
        raise UserError(_no_channel(paths.data))
    folders = {name: paths.data / name for name in names}
    return find_channels({name: config.get(name, {}) for name in names}, folders, alone=alone)


def _no_channel(folder: Path) -> str:
    if files := sorted(path.name for path in folder.glob("*")):
        return (
            f"there is no input channel: {folder} holds {files[0]!r} and no folder. A channel is a folder of "
            f"files: move it to {folder / 'train'}."
        )
    return (
        f"there is no input channel: {folder} holds no folder, and inputdataconfig.json names none. Give the "
        "job a channel named 'train'."
    )
