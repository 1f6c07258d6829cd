"""The job: the whole configuration, its parts checked against each other, as one frozen value."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb.environment import Paths, can_write, plans_given_up, read_hosts, read_json, state_of
from smxgb.errors import Mistakes, UserError
from smxgb.job.base_model import find_base_model
from smxgb.job.mode import choose_team, refuse_pipes
from smxgb.job.sources import SAGEMAKER, Sources, read_channels, read_settings
from smxgb.machine import read_machine
from smxgb.settings import kind_of, tunes_on_train

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.environment import Hosts
    from smxgb.job.base_model import BaseModel
    from smxgb.job.channels import Channels
    from smxgb.job.mode import Team
    from smxgb.machine import Machine
    from smxgb.settings import Hyperparameters, Parsed


@dataclass(frozen=True)
class Job:
    """One training job, as one host sees it.

    `checkpoints` is the folder of checkpoints, else that of the state for a restart, None without both.
    `base` is the model that training goes on from, None if it begins with the first round. `notes` are lines
    for the log: what was read differently from how it is written, and what has no effect. With the first
    `plans_given_up` memory plans the work has run out of memory before.
    """

    paths: Paths
    hosts: Hosts
    machine: Machine
    parameters: Parsed
    channels: Channels
    team: Team
    notes: tuple[str, ...]
    checkpoints: Path | None = None
    base: BaseModel | None = None
    plans_given_up: int = 0

    @property
    def threads(self) -> int:
        """The threads of each worker."""
        return self.parameters.settings.nthread or max(1, self.machine.threads // self.team.workers)


def load_job(environ: Mapping[str, str], sources: Sources = SAGEMAKER) -> Job:
    """Read and check the configuration of this host, and list its data files without reading their rows.

    Raises:
        UserError: With every mistake of the configuration.
    """
    paths = Paths.from_environ(environ)
    machine = read_machine(environ)
    mistakes = Mistakes()
    hosts = parameters = channels = team = None
    with mistakes.collect():
        hosts = read_hosts(paths)
    base = None
    with mistakes.collect():
        base = find_base_model(paths) if sources.channels is None else None
    with mistakes.collect():
        parameters = read_settings(paths, sources, mistakes, base)
    with mistakes.collect():
        channels = read_channels(paths, sources, alone=hosts is None or len(hosts.names) == 1)
    checkpoints = None
    with mistakes.collect():
        checkpoints = _checkpoint_folder(paths)
    state = checkpoints or state_of(environ)
    if parameters:
        if base:
            base.check(parameters, mistakes)
        team = choose_team(parameters, hosts, machine, mistakes)
        _check_spool_dir(parameters, mistakes)
        _refuse_what_comes_later(parameters, mistakes)
        if channels:
            _cross_check(parameters, team, channels, mistakes)
    mistakes.raise_any()
    assert hosts and parameters and channels and team  # noqa: S101, PT018 - or there was a mistake
    settings = parameters.settings
    notes = [*parameters.notes, *channels.notes, *_unused(settings, channels)]
    if base:
        notes.append(base.describe())
    if checkpoints is None:
        notes.append("No checkpoints are written: there is no checkpointconfig.json (checkpoint_s3_uri).")
    return Job(
        paths, hosts, machine, parameters, channels, team, tuple(notes), state, base, plans_given_up(environ)
    )


def _checkpoint_folder(paths: Paths) -> Path | None:
    """Return the folder that checkpointconfig.json names, None without that file. Raises UserError."""
    file = paths.config / "checkpointconfig.json"
    config = read_json(file)
    if not config:
        return None
    folder = config.get("LocalPath", paths.base / "checkpoints")
    if not isinstance(folder, str | Path) or not Path(folder).is_absolute():
        raise UserError(
            f"{file}: LocalPath is {json.dumps(folder)}: it must be the full path of "
            "a folder, as /opt/ml/checkpoints."
        )
    return Path(folder)


def _cross_check(parameters: Parsed, team: Team, channels: Channels, mistakes: Mistakes) -> None:
    """Note what the settings and the team need of the channels and do not find there."""
    refuse_pipes(team, channels, mistakes)
    _need_groups(parameters.settings, channels, mistakes)
    if channels.validation is None:
        _need_validation(parameters.settings, mistakes)


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
            "sagemaker_program (a training script, entry_point) trains as it likes, and nothing of it can be "
            "checked beforehand: leave it out to check the settings and data of the built-in training."
        )


def _need_groups(settings: Hyperparameters, channels: Channels, mistakes: Mistakes) -> None:
    objective = settings.objective
    # These content types have no queries of their own, and XGBoost would take all rows for one.
    holds_tables = any(channel.format.is_table for channel in channels if channel.files)
    if kind_of(objective) == "ranking" and settings.group_column is None and holds_tables:
        mistakes.add(
            f"objective={objective} needs group_column: the name or index of the column that says to which "
            "query a row belongs."
        )


def _unused(settings: Hyperparameters, channels: Channels) -> Iterator[str]:
    """Yield lines for the log about columns that are not read, and a setting without effect."""
    for channel in channels:
        for name, values in channel.partitions.items():
            if len(values) == 1 or name in settings.drop_columns:
                yield f"Channel '{channel.name}': the column {name!r} of its folders' names is not read."
        # Of a table its reader says so, which knows that the weights become a feature.
        if settings.csv_weights and not (channel.format.has_csv_weights or channel.format.is_table):
            yield (
                f"csv_weights has no effect on channel '{channel.name}', which holds {channel.content_type}."
            )


def _need_validation(settings: Hyperparameters, mistakes: Mistakes) -> None:
    if settings.tuning_metric and not tunes_on_train(settings):
        mistakes.add(
            f"the tuning job optimises {settings.tuning_metric!r}, but there is no 'validation' channel: "
            "add one."
        )
