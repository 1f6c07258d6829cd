"""The job: all that the configuration says, checked against itself, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb.environment import Paths, can_write, read_hosts, read_json
from smxgb.errors import Mistakes, UserError
from smxgb.job.channels import find_channels
from smxgb.job.team import choose_team, refuse_pipes
from smxgb.machine import read_machine
from smxgb.settings import kind_of, parse, tunes_on_train

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.environment import Hosts
    from smxgb.job.channels import Channels
    from smxgb.job.team import Team
    from smxgb.machine import Machine
    from smxgb.settings import Hyperparameters, Parsed


@dataclass(frozen=True)
class Job:
    """One training job, as one host sees it.

    `notes` are lines for the log about what was understood differently from how it was written.
    """

    paths: Paths
    hosts: Hosts
    machine: Machine
    parameters: Parsed
    channels: Channels
    team: Team
    notes: tuple[str, ...]

    @property
    def threads(self) -> int:
        """The threads of each worker."""
        return self.parameters.settings.nthread or max(1, self.machine.threads // self.team.workers)


@dataclass(frozen=True)
class Places:
    """Where a job's hyperparameters and channels are, if not where SageMaker puts them.

    `settings` are the hyperparameters themselves, if they are in no file.
    """

    hyperparameters: Path | None = None
    channels: Mapping[str, Path] | None = None
    settings: Mapping[str, object] | None = None


def load_job(environ: Mapping[str, str], places: Places = Places()) -> Job:
    """Read and check the configuration of this host, and list its files; their data is not read yet.

    Raises:
        UserError: With every mistake of the configuration.
    """
    paths = Paths.from_environ(environ)
    machine = read_machine(environ)
    mistakes = Mistakes()
    hosts = parameters = channels = team = None
    with mistakes.collect():
        hosts = read_hosts(paths)
    with mistakes.collect():
        parameters = read_settings(paths, places, mistakes)
    with mistakes.collect():
        channels = _channels(paths, places, alone=hosts is None or len(hosts.names) == 1)
    with mistakes.collect():
        checkpoints = read_json(paths.config / "checkpointconfig.json")
    if parameters:
        team = choose_team(parameters, hosts, machine, mistakes)
        _check_spool_dir(parameters, mistakes)
        _refuse_what_comes_later(parameters, mistakes)
        if channels:
            _cross_check(parameters, team, channels, mistakes)
    mistakes.raise_any()
    assert hosts and parameters and channels and team  # noqa: S101, PT018 - or there was a mistake
    settings = parameters.settings
    notes = [*parameters.notes, *channels.notes, *_unused(settings, channels)]
    if checkpoints:
        notes.append(
            "checkpointconfig.json is there, but this version writes no checkpoints: a restart begins anew."
        )
    if settings.save_model_on_termination:
        notes.append("save_model_on_termination has no effect yet: a stopped job leaves no model.")
    return Job(paths, hosts, machine, parameters, channels, team, tuple(notes))


def read_settings(paths: Paths, places: Places, mistakes: Mistakes | None = None) -> Parsed:
    """Return the job's settings alone.

    Raises UserError; with `mistakes`, that notes what is wrong with single settings, for a file only.
    """
    return parse(read_hyperparameters(paths, places), mistakes)


def read_hyperparameters(paths: Paths, places: Places) -> Mapping[str, object]:
    """Return the hyperparameters as given. A file that was named must be there; SageMaker's may be missing.

    Raises UserError for a file that can't be read.
    """
    if places.settings is not None:
        return places.settings
    named = places.hyperparameters
    if named is not None and not named.exists():
        raise UserError(f"there is no file {named}: give the path of a JSON file with the hyperparameters.")
    return read_json(named or paths.config / "hyperparameters.json")


def _cross_check(parameters: Parsed, team: Team, channels: Channels, mistakes: Mistakes) -> None:
    """Note what the settings, or those who train, ask of the channels in vain."""
    refuse_pipes(team, channels, mistakes)
    _need_groups(parameters.settings, channels, mistakes)
    if channels.validation is None:
        _need_validation(parameters.settings, mistakes)


def _channels(paths: Paths, places: Places, *, alone: bool) -> Channels:
    if places.channels is not None:
        return find_channels({name: {} for name in places.channels}, places.channels, alone=alone)
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


def _check_spool_dir(parameters: Parsed, mistakes: Mistakes) -> None:
    chosen = parameters.settings.spool_dir
    if chosen is not None and not can_write(Path(chosen)):
        mistakes.add(
            f"{parameters.shown['spool_dir']} is no folder that can be written: give one that exists, or "
            "leave it out."
        )


def _refuse_what_comes_later(parameters: Parsed, mistakes: Mistakes) -> None:
    settings = parameters.settings
    if settings.kfold:
        mistakes.add(
            "_kfold (cross validation) is not supported yet: leave it out and give a validation channel."
        )
    if parameters.script_mode.get("sagemaker_program"):
        mistakes.add(
            "sagemaker_program (a training script, entry_point) is not supported yet: leave out "
            "entry_point to use the built-in training."
        )


def _need_groups(settings: Hyperparameters, channels: Channels, mistakes: Mistakes) -> None:
    objective = settings.objective
    # XGBoost would take all rows of such a table for one query.
    holds_tables = any(channel.format.is_table for channel in channels if channel.files)
    if kind_of(objective) == "ranking" and settings.group_column is None and holds_tables:
        mistakes.add(
            f"objective={objective} needs group_column: the name or index of the column that says to which "
            "query a row belongs."
        )


def _unused(settings: Hyperparameters, channels: Channels) -> Iterator[str]:
    """Yield the lines of the log that say what is there, and not read."""
    for channel in channels:
        for name, values in channel.partitions.items():
            if len(values) == 1 or name in settings.drop_columns:
                yield f"Channel '{channel.name}': the column {name!r} of its folders' names is not read."
        if settings.csv_weights and not channel.format.has_csv_weights:
            yield (
                f"csv_weights has no effect on channel '{channel.name}', which holds {channel.content_type}"
                + (": name the weights' column in weight_column." if channel.format.is_table else ".")
            )


def _need_validation(settings: Hyperparameters, mistakes: Mistakes) -> None:
    if settings.early_stopping_rounds:
        mistakes.add(
            "early_stopping_rounds needs rows to watch that are not trained on: add a 'validation' "
            "channel, or leave early_stopping_rounds out."
        )
    if settings.tuning_metric and not tunes_on_train(settings):
        mistakes.add(
            f"the tuning job optimises {settings.tuning_metric!r}, but there is no 'validation' channel: "
            "add one."
        )
