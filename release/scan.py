"""Ask osv.dev about known vulnerabilities of an image's components.

The components are those of the image's own list (CycloneDX, at /opt/smxgb/sbom.cdx.json). One request names
them all: Python's packages by name, Debian's by source package, as advisories do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import urllib.request
from typing import Any

DOCKER = os.environ.get("DOCKER", "docker")
SERVICE = "https://api.osv.dev"
DEBIAN = "Debian:13"
LISTED = "/opt/smxgb/sbom.cdx.json"
FOUND, UNKNOWN = 1, 3
"""Exit codes: there are vulnerabilities; the data could not be reached."""


def components(image: str) -> list[dict[str, Any]]:
    """Return the components that the image lists."""
    command = [DOCKER, "run", "--rm", "--network", "none", image, "cat", LISTED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"scripts/scan: {image} has no list of components: {done.stderr.strip()}")
    listed: list[dict[str, Any]] = json.loads(done.stdout)["components"]
    return listed


def query(component: dict[str, Any]) -> dict[str, Any] | None:
    """Return the service's query for a component, None for one that no registry has."""
    purl = component.get("purl", "")
    if purl.startswith("pkg:deb/"):
        source = {entry["name"]: entry["value"] for entry in component["properties"]}
        package = {"ecosystem": DEBIAN, "name": source["debian:source"]}
        return {"package": package, "version": source["debian:source-version"]}
    if purl.startswith("pkg:pypi/"):
        package = {"ecosystem": "PyPI", "name": component["name"]}
        return {"package": package, "version": component["version"]}
    return None


def vulnerabilities(queries: list[dict[str, Any]], service: str) -> dict[str, list[str]]:
    """Return the identifiers of what is known against each package, by "name version".

    Raises:
        OSError: If the service does not answer.
    """
    request = urllib.request.Request(  # noqa: S310 - the address is ours or the caller's
        f"{service}/v1/querybatch",
        json.dumps({"queries": queries}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
        results = json.load(answer)["results"]
    known = {}
    for asked, result in zip(queries, results, strict=True):
        if found := [entry["id"] for entry in result.get("vulns", [])]:
            known[f"{asked['package']['name']} {asked['version']}"] = found
    return known


def main() -> None:
    """Scan the image that the arguments name; exit 0 clean, 1 with findings, 3 without an answer."""
    parser = argparse.ArgumentParser(prog="scripts/scan", description=__doc__)
    parser.add_argument("image", nargs="?", default="smxgb:cpu", help="a built image (default smxgb:cpu)")
    parser.add_argument("--service", default=SERVICE, help="where the OSV interface is (default %(default)s)")
    options = parser.parse_args()
    queries = [asked for component in components(options.image) if (asked := query(component))]
    unique = list({json.dumps(asked): asked for asked in queries}.values())
    try:
        known = vulnerabilities(unique, options.service)
    except OSError as error:
        print(
            f"scripts/scan: {options.service} cannot be reached ({error}): nothing is known about the "
            f"{len(unique)} packages of {options.image}.",
            file=sys.stderr,
        )
        sys.exit(UNKNOWN)
    for package, found in sorted(known.items()):
        print(f"{package}: {', '.join(found)}")
    print(
        f"{len(unique)} packages of {options.image} were looked up; {len(known)} have known vulnerabilities."
    )
    sys.exit(FOUND if known else 0)


if __name__ == "__main__":
    main()
