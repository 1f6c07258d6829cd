"""The report of a job: its first and last lines in the log, and metrics.json."""

from __future__ import annotations

import json
import platform
from importlib import metadata
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import xgboost as xgb

from smxgb import __version__
from smxgb.wording import counted, readable_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from smxgb.job import Channel, Job
    from smxgb.machine import Machine
    from smxgb.rows import Schema, Summary
    from smxgb.training.boosting import Trained
    from smxgb.training.phases import PhaseClock

SHOWN = 5
"""At most 5 skipped files are named in a line of the log."""
MODEL_SNIPPET = "xgboost.Booster(model_file=bytearray(pathlib.Path('xgboost-model').read_bytes()))"
MANY_FILES = 1_000
SMALL_FILE = 1 << 20
"""More than 1,000 files of less than 1 MiB on average are slow to read: the log says so."""


def versions(image: str | None) -> dict[str, str]:
    """Return the versions of what a job runs on; `image` is the version that the image has."""
    cuda = xgb.build_info().get("CUDA_VERSION")
    found = {
        "image": image,
        "smxgb": __version__,
        "xgboost": xgb.__version__,
        "cuda": ".".join(map(str, cuda)) if cuda else None,
        "pyarrow": pa.__version__,
        "numpy": np.__version__,
        "distributed": _installed("distributed"),
        "python": platform.python_version(),
    }
    return {name: number for name, number in found.items() if number}


def _installed(package: str) -> str | None:
    """Return a package's version without importing it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def start_block(job: Job) -> list[str]:
    """Return the lines that say what runs, on what, with which data and settings, and why.

    What is the same on all hosts is in the first host's lines only.
    """
    if job.hosts.current != job.hosts.names[0]:
        return _on_another_host(job)
    mode, device = job.team.mode, job.team.device
    numbers = [f"{name} {number}" for name, number in versions(job.machine.image).items()]
    each = f" for each of {job.team.workers} workers" if job.team.workers > 1 else ""
    return [
        f"Versions: {', '.join(numbers)}.",
        f"Mode: {mode.value} ({mode.why}). Device: {device.value} ({device.why}).",
        f"Threads: {job.threads}{each}. Memory: {_memory(job.machine)}.",
        *(line for channel in job.channels for line in _channel_lines(channel)),
        f"Hyperparameters: {json.dumps(given(job))}",
        *job.notes,
    ]


def _channel_lines(channel: Channel) -> Iterator[str]:
    count = len(channel.files)
    yield (
        f"Channel {channel.name}: {_files(channel)}, "
        f"{channel.content_type} ({channel.why}), {channel.mode}, {channel.distribution}."
    )
    if count > MANY_FILES and channel.size < count * SMALL_FILE:
        yield (
            f"Channel {channel.name}: its files have {readable_bytes(channel.size // count)} on average; "
            "fewer and larger ones are read faster."
        )
    if channel.skipped:
        yield f"Channel {channel.name}: skipped {_skipped(channel)}."


def _on_another_host(job: Job) -> list[str]:
    parts = [f"{job.team.device.value}, {counted(job.threads, 'thread')}, {_memory(job.machine)}"]
    for channel in job.channels:
        skipped = f", skipped {_skipped(channel)}" if channel.skipped else ""
        parts.append(f"{channel.name} {_files(channel)}{skipped}")
    return [f"Host {job.hosts.current}: {'; '.join(parts)}."]


def _memory(machine: Machine) -> str:
    return (
        f"{readable_bytes(machine.memory_available)} free of {readable_bytes(machine.memory_limit)} (the "
        f"{machine.memory_limit_source}'s)"
    )


def _files(channel: Channel) -> str:
    if channel.mode == "Pipe":
        return "a pipe"
    return f"{counted(len(channel.files), 'file')}, {readable_bytes(channel.size)}"


def _skipped(channel: Channel) -> str:
    more = f" and {len(channel.skipped) - SHOWN} more" if len(channel.skipped) > SHOWN else ""
    return f"{', '.join(channel.skipped[:SHOWN])}{more}"


def given(job: Job) -> dict[str, object]:
    """Return the hyperparameters that the job sets, as values of their types."""
    return {**job.parameters.settings.model_dump(by_alias=True, exclude_unset=True), **job.parameters.extra}


def final_report(
    job: Job,
    channels: Mapping[str, Summary],
    schema: Schema,
    trained: Trained,
    clock: PhaseClock,
    *,
    notices: Sequence[str],
) -> dict[str, object]:
    """Return the content of metrics.json: times in seconds, memory in bytes, rounds counted from 0."""
    return {
        "history": trained.history,
        "rounds": trained.rounds,
        "stopped_after": trained.rounds if trained.is_stopped else None,
        "best_round": trained.best_round,
        "best_score": trained.best_score,
        "monitored": trained.monitored,
        "notices": list(notices),
        "rows": {name: summary.rows for name, summary in channels.items()},
        "dropped_rows": {name: summary.dropped for name, summary in channels.items()},
        "features": None if schema.invented else list(schema.names),
        "feature_count": len(schema.names),
        "class_labels": list(schema.classes) or None,
        "phases": {
            phase.name: {"seconds": round(phase.seconds, 3), "peak_memory": phase.peak_memory}
            for phase in clock.phases
        },
        "peak_memory": clock.peak_memory,
        "mode": job.team.mode.value,
        "device": job.team.device.value,
        "workers": len(job.hosts.names) * job.team.workers,
        "hyperparameters": given(job),
        "versions": versions(job.machine.image),
        "load_the_model": MODEL_SNIPPET,
    }


def closing_line(trained: Trained, path: Path) -> str:
    """Return the last line of a job that succeeded: how far it trained and where the model is."""
    shown = trained.best_round if trained.best_round is not None else trained.rounds - 1
    values = [
        f"{data}-{metric}:{values[shown]:.6g}"
        for data, metrics in trained.history.items()
        for metric, values in metrics.items()
    ]
    best = ""
    if trained.best_round is not None:
        best = f", the best is round {trained.best_round} (counted from 0)"
    verb = "Stopped after" if trained.is_stopped else "Trained"
    return f"{verb} {counted(trained.rounds, 'round')}{best} ({', '.join(values)}). Model: {path}"
