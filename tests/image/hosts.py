"""Several hosts as SageMaker runs them: a container each, on one network, known by their names."""

from __future__ import annotations

from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from tests.image.containers import Container, start
from tests.opt_ml import Outcome, write_opt_ml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.opt_ml import Source


@contextmanager
def hosts(
    base: Path,
    network: str,
    channels: Sequence[Mapping[str, Source]],
    settings: Mapping[str, object],
    *,
    distribution: str = "ShardedByS3Key",
    last: int = -1,
    of_last: Mapping[str, object] = MappingProxyType({}),
    checkpointconfig: Mapping[str, str] | None = None,
    before_last: Callable[[list[Container]], None] = lambda _: None,
) -> Iterator[list[Container]]:
    """Start a container for each host of a job, that at the index `last` as the last; remove what is left.

    `of_last` are settings that only that host has.
    `before_last` is called with the others once they have started.
    """
    names = [f"algo-{number}" for number in range(1, len(channels) + 1)]
    every = sorted({name for of_host in channels for name in of_host})
    config = {
        name: {"ContentType": "text/csv", "S3DistributionType": distribution, "TrainingInputMode": "File"}
        for name in every
    }
    started: dict[str, Container] = {}
    try:
        for name, of_host in sorted(
            zip(names, channels, strict=True), key=lambda host: host[0] == names[last]
        ):
            write_opt_ml(
                base / name,
                hyperparameters={**settings, **(of_last if name == names[last] else {})},
                channels=of_host,
                inputdataconfig=config,
                checkpointconfig=None if checkpointconfig is None else dict(checkpointconfig),
                resourceconfig={"current_host": name, "hosts": names, "network_interface_name": "ethwe"},
            )
            if name == names[last]:
                before_last(list(started.values()))
            options = ("--network", network, "--hostname", name, "--network-alias", name)
            started[name] = start(base / name, "train", options=options)
        yield [started[name] for name in names]
    finally:
        for container in started.values():
            container.remove()


def outcomes(containers: Sequence[Container]) -> list[Outcome]:
    return [container.outcome() for container in containers]
