"""The work of a job with a script, between the supervisor and the user's program."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb.environment import Meeting, Paths, read_hosts, read_json
from smxgb.limits import Limits
from smxgb.machine import read_machine
from smxgb.overlay import Overlay
from smxgb.script_mode.entry_point import make_ready
from smxgb.script_mode.run import run
from smxgb.script_mode.script import read_script
from smxgb.script_mode.variables import variables
from smxgb.supervision.messages import Arrived, Lead, PhaseBegins, Rendezvous, Scratch, Succeeded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smxgb.supervision.link import Link


def run_script(environ: Mapping[str, str], link: Link) -> None:
    """Run the script that the hyperparameters name.

    Raises:
        UserError: If it can't be made ready, or ends with another exit code than 0.
        PlatformError: If it can't be fetched, or a signal ends it.
    """
    script = read_script(environ)
    overlay = _overlay(link)
    of_code = {"PYTHONPATH": _joined(str(script.code), environ.get("PYTHONPATH"))}
    own = overlay.environ({**environ, **of_code, **variables(script, read_machine(environ))})
    named = {"CURRENT_HOST": own["SM_CURRENT_HOST"], "SAGEMAKER_JOB_NAME": script.job_name}
    region = {"AWS_REGION": script.region, "SAGEMAKER_REGION": script.region} if script.region else {}
    own |= named | region
    command = make_ready(script, overlay, own)
    _run(f"the script {script.program}", command, own, script.code, link)


def run_command(command: Sequence[str], environ: Mapping[str, str], link: Link) -> None:
    """Run a command that the job gives as its entry point, with an overlay for what it installs.

    Raises:
        UserError: If it ends with another exit code than 0.
        PlatformError: If a signal ends it.
    """
    _run("the job's command", command, _overlay(link).environ(environ), Path.cwd(), link)


def _run(name: str, command: Sequence[str], environ: Mapping[str, str], folder: Path, link: Link) -> None:
    """Run the program when all hosts are ready, and report that it has ended well."""
    meeting = _meet(environ, link)
    link.send(PhaseBegins("script"))
    run(name, command, {**environ, "PYTHONUNBUFFERED": "1", **meeting}, folder, link)
    link.send(Succeeded(f"{name[0].upper()}{name[1:]} has ended well."))


def _meet(environ: Mapping[str, str], link: Link) -> dict[str, str]:
    """Wait until all hosts are ready; return the environment variable that says where their scripts meet."""
    paths = Paths.from_environ(environ)
    hosts = read_hosts(paths)
    if len(hosts.names) == 1:
        return {}
    link.send(Arrived({"mode": "script"}))
    if hosts.current == hosts.names[0]:
        lead = link.wait_for(Lead)
        port = Limits.read(read_json(paths.config / "hyperparameters.json")).tracker_port
        link.send(Rendezvous({"address": lead.address, "port": port}, lead.addresses))
    found = link.wait_for(Rendezvous)
    where = found.arguments
    return Meeting(str(where["address"]), int(where["port"]), found.addresses).as_environ()


def _overlay(link: Link) -> Overlay:
    """Make the script's environment, in a folder that the supervisor removes at the end."""
    folder = Path(tempfile.mkdtemp(prefix="smxgb-script-"))
    link.send(Scratch(folder))
    return Overlay.make(folder)


def _joined(first: str, others: str | None) -> str:
    return f"{first}:{others}" if others else first
