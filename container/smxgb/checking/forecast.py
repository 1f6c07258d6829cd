"""The forecast (`smxgb check --listing`): what a group of hosts would need for files that are elsewhere.

What a listing does not tell is assumed from measurements, and each line says so.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb.checking.dry_run import perform_dry_run
from smxgb.checking.listing import read_listing, text_bytes
from smxgb.environment import Hosts, Paths
from smxgb.errors import Mistakes, UserError
from smxgb.job import FORMATS, choose_team, load_job, read_hyperparameters
from smxgb.machine import read_machine
from smxgb.rows import CELL_BYTES, Shape
from smxgb.settings import parse
from smxgb.training import UNCERTAINTY, Memory, make_plans
from smxgb.wording import counted, readable_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.checking.listing import Listing
    from smxgb.job import Sources, Team
    from smxgb.machine import Machine
    from smxgb.settings import Parsed
    from smxgb.training import Plan

COLUMNS = 28
"""Columns of a row that `Format.row_bytes` measures."""

MB = 1_000_000
SKETCH = 11.5
BIN = 16.5
"""Million values a second of one core, for the two passes that build the binned matrix."""
TREES = (175.0, 250.0)
"""Million values a second of one core in a round of hist at depth 6: the lowest and the highest measured."""
THREADS = 16
ROUNDS = 100
"""Assumed where the settings do not give them."""
SHARE_OF_CORES = 0.5
"""The share of the rates that is left at worst if all cores of a host work: two threads may share a core."""


@dataclass(frozen=True)
class Sample:
    """The shape of some rows that were read, and the bytes of their files when unpacked."""

    shape: Shape
    text: float


def forecast_files(listing: str, hosts: int, environ: Mapping[str, str], sources: Sources) -> Iterator[str]:
    """Yield what `check` says of a group: what so many hosts would do with the files of a listing.

    `listing` is a file's path, or "-" for the standard input. The settings are those of the job, if it has
    any. If `sources` has a folder for train, all rows are assumed to be like its first ones.

    Raises:
        UserError: With what is wrong with the listing, the settings or the rows.
    """
    if hosts < 1:
        raise UserError(f"--hosts {hosts} is not allowed: give the number of instances, 1 or more.")
    listed = _open_listing(listing)
    settings = read_hyperparameters(Paths.from_environ(environ), sources) or {"num_round": ROUNDS}
    parameters = parse(settings)
    sample = None
    if sources.channels:
        yield "The sample, on this machine:"
        # This machine may have no GPU though the hosts have, and only the rows matter here.
        job = load_job(environ, replace(sources, settings={**settings, "device": "cpu"}))
        files = job.channels.train.files
        sample = Sample(perform_dry_run(job), sum(text_bytes(file.path, file.size) for file in files))
    yield from plan_group(listed, hosts, parameters, read_machine(environ), sample)


def _open_listing(listing: str) -> Listing:
    if listing == "-":
        return read_listing(sys.stdin, "the standard input")
    if not Path(listing).is_file():
        raise UserError(
            f"there is no file {listing}: give a text with a line of size and path for each file."
        )
    with Path(listing).open(encoding="utf-8", errors="replace") as lines:
        return read_listing(lines, listing)


def plan_group(
    listing: Listing, hosts: int, parameters: Parsed, machine: Machine, sample: Sample | None
) -> Iterator[str]:
    """Yield the lines that say what each of so many hosts would read, hold and do.

    The hosts are assumed to be like `machine`, but of another size. Without `sample`, the rows are assumed to
    be like those that were measured.

    Raises:
        UserError: If the settings can't be followed by so many hosts.
    """
    team = _team(hosts, parameters, machine)
    yield f"Mode: {team.mode.value} ({team.mode.why}). Device: {team.device.value}."
    skipped = f" Skipped: {counted(listing.skipped, 'file')} without data." if listing.skipped else ""
    yield (
        f"Listing: {counted(len(listing.sizes), 'file')} of {listing.content_type}, "
        f"{readable_bytes(listing.size)}.{skipped}"
    )
    shape, why = _rows(listing, sample)
    yield f"Rows: about {shape.rows:,} with {shape.columns} columns, {why}."
    shares = [sum(listing.sizes[host::hosts]) for host in range(hosts)]
    yield from _shares(listing, shares)
    part = max(shares) / listing.size
    fullest = replace(shape, rows=round(shape.rows * part))
    # The labels are not known, so the number of classes is known only from the settings.
    classes = parameters.settings.num_class
    on_gpu = team.device.value == "cuda"
    unknown = Memory(0, 0 if on_gpu else None)
    plan, *_ = make_plans(parameters, {"train": fullest}, unknown, classes=classes, reading=0)
    yield _memory(plan)
    spool = CELL_BYTES * (shape.columns + 1) * fullest.rows
    when = " with FastFile" if FORMATS[listing.content_type].is_cheap_to_repeat else ""
    yield (
        f"Disk of the fullest host: {readable_bytes(max(shares))} of files in File mode, and "
        f"{readable_bytes(spool)} of parsed rows{when}."
    )
    if on_gpu or plan.kind != "quantile":
        yield "Time: no forecast, for only tree_method=hist on processors was measured."
    else:
        yield _time(listing, fullest, part, parameters, team.workers)


def _memory(plan: Plan) -> str:
    needed = plan.needed
    if needed.gpu is not None:
        return (
            f"Memory of the fullest host's GPUs together: about {readable_bytes(needed.gpu)} (reckoned "
            "from XGBoost's source, not measured)."
        )
    low, high = (round((1 + sign * UNCERTAINTY) * needed.host) for sign in (-1, 1))
    return (
        f"Memory of the fullest host: about {readable_bytes(needed.host)} (between {readable_bytes(low)} and "
        f"{readable_bytes(high)}) for a {plan.kind} matrix, without validation rows."
    )


def _team(hosts: int, parameters: Parsed, machine: Machine) -> Team:
    """Return the team; the hosts are assumed to have the GPUs and processors that the settings ask for."""
    settings, mistakes = parameters.settings, Mistakes()
    asked = settings.device == "cuda" or (settings.use_dask_gpu_training and settings.device is None)
    gpus = tuple(map(str, range(settings.workers_per_host or 1))) if asked else ()
    names = tuple(f"algo-{number}" for number in range(1, hosts + 1))
    threads = max(machine.threads, settings.workers_per_host or 1)
    assumed = replace(machine, gpus=gpus, threads=threads)
    team = choose_team(parameters, Hosts(names[0], names), assumed, mistakes)
    mistakes.raise_any()
    return team


def _rows(listing: Listing, sample: Sample | None) -> tuple[Shape, str]:
    """Return the shape of all rows, and where it comes from."""
    if sample:
        bytes_a_row = sample.text / sample.shape.rows
        shape = replace(sample.shape, rows=round(listing.text / bytes_a_row))
        return shape, f"if all files are like those of --train, with {bytes_a_row:,.0f} bytes a row"
    assumed = FORMATS[listing.content_type].row_bytes
    return Shape(round(listing.text / assumed), COLUMNS), (
        f"assumed to be like the rows that were measured, with {assumed} bytes each: give --train FOLDER "
        "with one of the files to have yours looked at"
    )


def _shares(listing: Listing, shares: list[int]) -> Iterator[str]:
    hosts, files = len(shares), len(listing.sizes)
    fewest, more = divmod(files, hosts)
    each = f"{fewest:,} or {counted(fewest + 1, 'file')}" if more else counted(fewest, "file")
    mean = listing.size / hosts
    yield (
        f"ShardedByS3Key: {each} a host, {readable_bytes(min(shares))} to "
        f"{readable_bytes(max(shares))}, if SageMaker deals out the sorted keys in turn; the fullest has "
        f"{max(shares) / mean:.2f} times the mean, and the others wait for it."
    )
    if files < hosts:
        idle = hosts - files
        or_shared = ", or FullyReplicated" if FORMATS[listing.content_type].can_be_cut else ""
        yield f"{idle} of the {hosts} hosts get no file: use fewer hosts or more files{or_shared}."
    yield (
        f"FullyReplicated: {readable_bytes(listing.size)} on each host's disk in File mode, of which it "
        f"trains on {readable_bytes(round(mean))}; FastFile streams only these."
    )


def _time(listing: Listing, shape: Shape, part: float, parameters: Parsed, workers: int) -> str:
    """Return the line about the time of the host that has `part` of all bytes."""
    settings = parameters.settings
    cores = settings.nthread * workers if settings.nthread else THREADS
    values = shape.rows * shape.columns / 1e6
    slowest, fastest = FORMATS[listing.content_type].rates
    megabytes = listing.text * part / MB
    build = values / SKETCH + values / BIN
    grow = values * settings.num_round
    high = (megabytes / slowest + build + grow / TREES[0]) / cores / SHARE_OF_CORES
    low = (megabytes / fastest + build + grow / TREES[1]) / cores
    return (
        f"Time: {_minutes(low)} to {_minutes(high)} for {counted(settings.num_round, 'round')} with {cores} "
        f"threads a host. Assumed of a core: {slowest} to {fastest} MB/s read, {SKETCH} and {BIN} million "
        f"values/s sketched and binned, {TREES[0]:g} to {TREES[1]:g} million values/s and round grown into "
        f"trees, at worst {SHARE_OF_CORES:.0%} of that with all cores busy. Not in it: the instances' start, "
        "the download, waits for disk and network, metrics."
    )


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"  # noqa: PLR2004 - two digits
