"""What the images say about themselves: labels, versions in the log, the list of components, the scan."""

from __future__ import annotations

import json
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.image.containers import docker, image, run_python

import smxgb

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from tests.image.containers import Train, Variant

REPOSITORY = Path(__file__).parents[2]
INSTALLED = """
import json
from importlib.metadata import distributions
print(json.dumps({d.name.lower().replace("_", "-"): d.version for d in distributions()}))
"""
COMPONENTS = "print(open('/opt/smxgb/sbom.cdx.json').read())"


def components(variant: Variant) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(run_python(COMPONENTS, variant=variant))["components"]
    return listed


def labels(variant: Variant) -> dict[str, str]:
    found = docker("image", "inspect", "--format", "{{json .Config.Labels}}", image(variant))
    described: dict[str, str] = json.loads(found.stdout)
    return described


@pytest.mark.parametrize("variant", ["cpu", "gpu"])
def test_the_labels_name_version_commit_xgboost_and_cuda(variant: Variant) -> None:
    found = labels(variant)
    assert found["org.opencontainers.image.version"] == smxgb.__version__
    assert len(found["org.opencontainers.image.revision"].removesuffix("-dirty")) == 40
    build = "import json, xgboost; print(json.dumps([xgboost.__version__, xgboost.build_info()]))"
    xgboost, info = json.loads(run_python(build, variant=variant))
    assert found["smxgb.xgboost"] == xgboost
    cuda = ".".join(map(str, info["CUDA_VERSION"])) if info["USE_CUDA"] else "none"
    assert found["smxgb.cuda"].startswith(cuda)


@pytest.mark.parametrize("variant", ["cpu", "gpu"])
def test_the_list_of_components_has_every_package_of_python(variant: Variant) -> None:
    installed = json.loads(run_python(INSTALLED, variant=variant))
    listed = {
        entry["name"].lower().replace("_", "-"): entry["version"]
        for entry in components(variant)
        if not entry.get("purl", "").startswith("pkg:deb/")
    }
    assert listed == installed
    assert "smxgb" in listed


def test_the_list_of_components_has_every_package_of_debian() -> None:
    form = "${Package} ${Version}\\n"
    shown = docker("run", "--rm", image("cpu"), "dpkg-query", "--show", f"--showformat={form}").stdout
    listed = {
        f"{entry['name']} {entry['version']}"
        for entry in components("cpu")
        if entry.get("purl", "").startswith("pkg:deb/")
    }
    assert listed == set(shown.splitlines())


def test_a_job_says_in_log_and_report_which_image_it_ran_in(train: Train, table: pd.DataFrame) -> None:
    outcome = train("train", hyperparameters={"num_round": 1}, channels={"train": table})
    versions = json.loads(outcome.output_data["metrics.json"])["versions"]
    found = labels("cpu")
    said = [found[f"org.opencontainers.image.{name}"] for name in ("version", "revision")]
    assert versions["image"] == f"{said[0]} cpu {said[1]}"
    assert versions["xgboost"] == found["smxgb.xgboost"]
    assert versions["distributed"]
    assert f"Versions: image {versions['image']}, " in outcome.log


def test_nothing_of_the_build_is_left() -> None:
    kinds = [
        "-name",
        ".cache",
        "-o",
        "-path",
        "/var/lib/apt/lists/*",
        "-o",
        "-name",
        "*.whl",
        "-o",
        "-name",
        "*.deb",
    ]
    found = docker("run", "--rm", image("cpu"), "find", "/", "-xdev", *kinds)
    assert found.stdout == ""
    assert docker("run", "--rm", image("cpu"), "test", "-s", "/opt/smxgb/LICENSE").returncode == 0


def scan(service: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [REPOSITORY / "scripts/scan", image("cpu"), "--service", service],
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def advisories(known: dict[str, str]) -> Iterator[str]:
    """Answer as osv.dev does: `known` has an identifier for some packages."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            names = [entry["package"]["name"] for entry in asked]
            results = [{"vulns": [{"id": known[name]}]} if name in known else {} for name in names]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"results": results}).encode())

        def log_message(self, *_: object) -> None:
            """Be quiet."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_scan_names_what_is_known_against_packages_of_both_kinds() -> None:
    with advisories({"numpy": "PYSEC-1", "zlib": "DEBIAN-CVE-2"}) as service:
        done = scan(service)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("numpy ") and line.endswith(": PYSEC-1") for line in lines)
    assert any(line.startswith("zlib ") and line.endswith(": DEBIAN-CVE-2") for line in lines)
    assert lines[-1].endswith("; 2 have known vulnerabilities.")


def test_a_scan_without_findings_is_clean() -> None:
    with advisories({}) as service:
        assert scan(service).returncode == 0


def test_a_scan_without_an_answer_says_so() -> None:
    done = scan("http://127.0.0.1:9")
    assert done.returncode == 3
    assert "http://127.0.0.1:9 cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_scan_asks_for_the_release_of_debian_that_the_image_has() -> None:
    shown = docker("run", "--rm", image("cpu"), "cat", "/etc/debian_version").stdout
    assert (
        f'DEBIAN = "Debian:{shown.partition(".")[0].strip()}"' in (REPOSITORY / "release/scan.py").read_text()
    )
