"""The team that trains a job: the mode, the device and the workers of a host, each with the reason for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from smxgb.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.environment import Hosts
    from smxgb.errors import Mistakes
    from smxgb.job.channels import Channels
    from smxgb.machine import Machine
    from smxgb.settings import Hyperparameters, Parsed

type Mode = Literal["single", "collective", "dask"]
type Device = Literal["cpu", "cuda"]


@dataclass(frozen=True)
class Choice[T]:
    """A value that the container chose, and why, for the log."""

    value: T
    why: str


@dataclass(frozen=True)
class Team:
    """The workers of a job: `workers` on each host, each with one `device`."""

    mode: Choice[Mode]
    device: Choice[Device]
    workers: int

    def offer(self) -> dict[str, str | int]:
        """Return what must be the same on all hosts."""
        return {"mode": self.mode.value, "device": self.device.value, "workers": self.workers}


def choose_team(parameters: Parsed, hosts: Hosts | None, machine: Machine, mistakes: Mistakes) -> Team:
    """Return the workers of a job, after noting what the settings ask for and this machine can't do.

    `hosts` None, for their file can't be read, counts as one host.
    """
    settings = parameters.settings
    device = _choose_device(parameters, machine, mistakes)
    count = len(hosts.names) if hosts else 1
    several = count > 1
    if device.value == "cuda":
        _check_constraints(settings, mistakes)
        mode, workers = _on_gpus(parameters, machine, count, mistakes)
    else:
        mode, workers = _on_processors(settings, machine, count, mistakes)
    if several or workers > 1:
        alone, cure = (
            ("one host", "use instance_count=1") if several else ("one worker", "set workers_per_host=1")
        )
        for what, why, instead in _for_one_worker(parameters):
            mistakes.add(f"{what} works with {alone} only{why}: {cure}, or {instead}.")
    return Team(mode, device, workers)


def refuse_pipes(team: Team, channels: Channels, mistakes: Mistakes) -> None:
    """Note channels in Pipe mode if the workers of a host would have to share them: a pipe has one reader."""
    for channel in channels:
        if channel.mode == "Pipe" and team.mode.value == "dask":
            mistakes.add(
                f"channel '{channel.name}': input mode Pipe does not go with use_dask_gpu_training or "
                "several GPUs, since the workers of a host can't share a pipe: use File or FastFile."
            )


def _choose_device(parameters: Parsed, machine: Machine, mistakes: Mistakes) -> Choice[Device]:
    settings = parameters.settings
    if without := _without_gpu_version(settings):
        what, instead = without
        if settings.device == "cuda":
            mistakes.add(f"{what} does not run on a GPU: use device=cpu, or {instead}.")
        elif settings.use_dask_gpu_training and settings.device is None:
            mistakes.add(
                f"{what} does not run on a GPU, where use_dask_gpu_training=true trains: use device=cpu, or "
                f"{instead}."
            )
        return Choice("cpu", f"{what} has no GPU version")
    if settings.device == "cpu":
        unused = f"; {len(machine.gpus)} GPUs are not used" if machine.gpus else ""
        return Choice("cpu", f"as asked for{unused}")
    if machine.gpus:
        return Choice("cuda", "as asked for" if settings.device else "a GPU is there")
    if settings.device == "cuda":
        mistakes.add(
            f"{parameters.shown['device']} needs a GPU and this host has none: use an instance with a GPU, "
            "or set device=cpu."
        )
    elif settings.use_dask_gpu_training:
        mistakes.add(
            "use_dask_gpu_training=true needs a GPU and this host has none: use an instance with GPUs, or "
            "device=cpu to do the same on its processors."
        )
    return Choice("cpu", "no GPU is there")


def _without_gpu_version(settings: Hyperparameters) -> tuple[str, str] | None:
    """Return the setting without a GPU version in XGBoost, and what to set instead; None if there is none."""
    if settings.booster == "gblinear":
        return "booster=gblinear", "use booster=gbtree"
    if settings.updater or settings.method == "exact":
        return settings.method_as_set, settings.to_hist
    return None


def _check_constraints(settings: Hyperparameters, mistakes: Mistakes) -> None:
    """Note trees without any limit under constraints, which XGBoost's builder for GPUs does not take."""
    if settings.interaction_constraints and settings.max_depth == 0 and not settings.max_leaves:
        mistakes.add(
            "interaction_constraints with max_depth=0 (no limit) needs max_leaves on a GPU: set "
            "max_leaves, set a depth, or use device=cpu."
        )


def _on_gpus(
    parameters: Parsed, machine: Machine, hosts: int, mistakes: Mistakes
) -> tuple[Choice[Mode], int]:
    """Return the mode and the workers of a host with GPUs: one for each, since none can drive two."""
    several = hosts > 1
    settings = parameters.settings
    gpus = len(machine.gpus)
    workers = settings.workers_per_host or gpus
    if workers > gpus:
        mistakes.add(
            f"workers_per_host={workers} is more than the {gpus} GPUs of this host, and a GPU takes one "
            "worker: leave it out, or use an instance with more GPUs."
        )
    only_alone = next((what for what, _, _ in _for_one_worker(parameters)), None)
    if only_alone and workers > 1 and not several and not settings.use_dask_gpu_training:
        return Choice("single", f"{only_alone} trains on 1 of the {gpus} GPUs"), 1
    if workers > 1 and any(gpu.startswith("MIG-") for gpu in machine.gpus):
        mistakes.add(
            "CUDA_VISIBLE_DEVICES names slices of GPUs (MIG), which can't train together: use whole GPUs, or "
            "workers_per_host=1."
        )
    if workers > 1:
        return Choice("dask", f"{workers} GPUs"), workers
    if settings.use_dask_gpu_training and several:
        return Choice("dask", "as asked for"), 1
    if several:
        return Choice("collective", f"{hosts} hosts"), 1
    unneeded = ": use_dask_gpu_training has nothing to share out" if settings.use_dask_gpu_training else ""
    return Choice("single", f"one host with one GPU{unneeded}" if gpus == 1 else "workers_per_host=1"), 1


def _on_processors(
    settings: Hyperparameters, machine: Machine, hosts: int, mistakes: Mistakes
) -> tuple[Choice[Mode], int]:
    """Return the mode and the workers of a host that trains on its processors: one for each at most."""
    workers = settings.workers_per_host or 1
    if settings.use_dask_gpu_training:
        if workers > machine.threads:
            mistakes.add(
                f"workers_per_host={workers} is more than the {counted(machine.threads, 'processor')} of "
                "this host: leave it out, or use an instance with more."
            )
        return Choice("dask", "as asked for"), workers
    if workers > 1:
        mistakes.add(
            f"workers_per_host={workers} goes with use_dask_gpu_training=true, or with "
            "GPUs: set that too, or leave it out."
        )
    return Choice("collective", f"{hosts} hosts") if hosts > 1 else Choice("single", "one host"), 1


def _for_one_worker(parameters: Parsed) -> Iterator[tuple[str, str, str]]:
    """Yield what only one worker can do, the reason as a clause or nothing, and what to do instead."""
    settings = parameters.settings
    if settings.booster == "gblinear":
        yield "booster=gblinear", ", since several would end with different models", "use booster=gbtree"
    elif settings.method == "exact":
        yield settings.method_as_set, "", settings.to_hist
    if settings.objective == "survival:cox":
        why = ", since it compares each row with all that come after it in time"
        yield "objective=survival:cox", why, "use objective=survival:aft"
    for metric in parameters.metrics:
        if not metric.entry.shared and settings.objective != "survival:cox":
            yield f"metric {metric.name}", "", "leave the metric out"
