"""What a script reads: its arguments and environment variables, as AWS's image gives them.

They are those of SageMaker's training toolkit (sagemaker-training 5.1: `Environment.to_env_vars` and
`mapping.to_cmd_args`), with which public scripts are written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from smxgb.environment import read_hosts, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.machine import Machine
    from smxgb.script_mode.script import Script

GROUP = "homogeneousCluster"
"""What SageMaker calls the instances of a job whose instances are all alike."""


def arguments(hyperparameters: Mapping[str, Any]) -> list[str]:
    """Return hyperparameters as arguments, by name: `--name value`, and `-n value` where it is one letter."""
    found = []
    for name, value in sorted(hyperparameters.items()):
        found += [f"--{name}" if len(name) > 1 else f"-{name}", _argument(value)]
    return found


def variables(script: Script, machine: Machine) -> dict[str, str]:
    """Return the environment variables that begin with SM_. Raises UserError if the job's files are wrong."""
    described = _described(script, machine)
    given = {
        **{name: value for name, value in described.items() if name not in _OF_TRAINING_ENV},
        "hps": script.hyperparameters,
        "framework_params": script.framework,
        "channels": sorted(described["channel_input_dirs"]),
        "training_env": described,
        "user_args": arguments(script.hyperparameters),
        **{f"channel_{name}": path for name, path in described["channel_input_dirs"].items()},
        **{f"hp_{name}": value for name, value in script.hyperparameters.items()},
    }
    return {f"SM_{name.upper()}": _text(value) for name, value in given.items()}


_OF_TRAINING_ENV = {
    "additional_framework_parameters",
    "channel_input_dirs",
    "distribution_hosts",
    "hyperparameters",
    "is_master",
    "is_modelparallel_enabled",
    "is_smddpmprun_installed",
    "is_smddprun_installed",
    "job_name",
    "master_hostname",
    "topology",
}
"""What stands in SM_TRAINING_ENV alone."""


def _described(script: Script, machine: Machine) -> dict[str, Any]:
    """Return what SM_TRAINING_ENV holds."""
    paths = script.paths
    resources = read_json(paths.config / "resourceconfig.json")
    channels = read_json(paths.config / "inputdataconfig.json")
    hosts = read_hosts(paths)
    groups = resources.get("instance_groups") or []
    own = resources.get("current_group_name", GROUP)
    return {
        "additional_framework_parameters": script.framework,
        "channel_input_dirs": {name: str(paths.data / name) for name in channels},
        "current_host": hosts.current,
        "current_instance_group": own,
        "current_instance_group_hosts": next(
            (group["hosts"] for group in groups if group["instance_group_name"] == own), []
        ),
        "current_instance_type": resources.get("current_instance_type", "local"),
        "distribution_hosts": list(hosts.names),
        "distribution_instance_groups": [],
        "framework_module": None,
        "hosts": list(hosts.names),
        "hyperparameters": script.hyperparameters,
        "input_config_dir": str(paths.config),
        "input_data_config": channels,
        "input_dir": str(paths.base / "input"),
        "instance_groups": [group["instance_group_name"] for group in groups],
        "instance_groups_dict": {group["instance_group_name"]: group for group in groups},
        "is_hetero": len(groups) > 1,
        "is_master": hosts.current == hosts.names[0],
        "is_modelparallel_enabled": None,
        "is_smddpmprun_installed": False,
        "is_smddprun_installed": False,
        "job_name": script.job_name,
        "log_level": script.log_level,
        "master_hostname": hosts.names[0],
        "model_dir": str(paths.model),
        "module_dir": script.submitted,
        "module_name": script.program.removesuffix(".py"),
        "network_interface_name": hosts.interface or "eth0",
        "num_cpus": machine.threads,
        "num_gpus": len(machine.gpus),
        "num_neurons": 0,
        "output_data_dir": str(paths.output_data),
        "output_dir": str(paths.output),
        "output_intermediate_dir": str(paths.output / "intermediate"),
        "resource_config": resources,
        "topology": resources.get("topology", []),
        "user_entry_point": script.program,
    }


def _argument(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}={each}" for name, each in sorted(value.items()))
    return "" if value is None else str(value)


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
