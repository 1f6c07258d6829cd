"""The overlay: a Python environment over this one, for what users' code needs beside what is installed.

What is installed in it goes before ours for the user's code, which runs in it, and does not exist for any
process of ours. So no requirement can break them.
"""

from __future__ import annotations

import subprocess
import sysconfig
import venv
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.errors import PlatformError, UserError
from smxgb.log import log, notice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SECONDS = 1800
"""Within this time all requirements must be installed."""

UNREACHED = "Retrying (Retry("
"""What pip says of an index that does not answer."""


@dataclass(frozen=True)
class Overlay:
    """An environment in `folder`, whose Python finds the packages there first, then ours."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Overlay:
        """Make the environment, which takes a fraction of a second."""
        venv.create(folder, symlinks=True, with_pip=False)
        overlay = cls(folder)
        ours = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
        lines = [f"import site; site.addsitedir({place!r})" for place in dict.fromkeys(ours)]
        (overlay.packages / "smxgb-below.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return overlay

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python3"

    @property
    def packages(self) -> Path:
        """Where its packages are installed."""
        names = {"base": str(self.folder), "platbase": str(self.folder)}
        return self.folder / sysconfig.get_path("purelib", "venv", names).removeprefix(f"{self.folder}/")

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return an environment in which `python3`, `pip` and `pip3` are those of the overlay."""
        path = f"{self.folder / 'bin'}:{environ.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"
        # pip itself is ours, and works on this Python (PIP_PYTHON is its option --python).
        return {**environ, "PATH": path, "PIP_PYTHON": str(self.python), "VIRTUAL_ENV": str(self.folder)}

    def install(
        self, what: Sequence[str], title: str, environ: Mapping[str, str], place: Path, *, isolated: bool
    ) -> None:
        """Install packages; a package of ours that does not go with one of them is a notice.

        Args:
            what: The arguments of `pip install`, as `-r requirements.txt`.
            title: What messages call them.
            environ: The environment variables of pip, which may have its settings.
            place: The folder that relative paths begin at.
            isolated: Whether no index can be reached, and none shall be tried.

        Raises:
            UserError: If there is no such package, or two exclude each other.
            PlatformError: If no index answers, or it takes too long.
        """
        log(f"Installing {title} ...")
        options = ["--no-index", "--no-build-isolation"] if isolated else []
        try:
            done = subprocess.run(
                [
                    self.python,
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    *options,
                    *what,
                ],
                env={**environ, "PIP_ROOT_USER_ACTION": "ignore"},
                cwd=place,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise PlatformError(f"{title} was not installed within {SECONDS} s.") from None
        said = [line.strip() for line in done.stderr.splitlines()]
        if done.returncode:
            raise _refusal(title, said, isolated=isolated)
        for line in said:
            if " requires " in line and "but you have" in line:
                notice(f"{title}: {line} Only the user's code sees it.")


def _refusal(title: str, said: Sequence[str], *, isolated: bool) -> UserError | PlatformError:
    """Return why pip has failed: what it calls its first error."""
    errors = [line.removeprefix("ERROR:").strip() for line in said if line.startswith("ERROR:")]
    first = next(iter([*errors, *said[-1:]]), "pip said nothing").rstrip(".")
    if isolated:
        return UserError(
            f"{title} can't be installed: {first}. Without a network there is only what the image and the "
            "code's folder hold: put wheels into the folder, with a line --find-links in requirements.txt."
        )
    if any(UNREACHED in line for line in said):
        return PlatformError(f"{title} can't be installed, for the package index can't be reached: {first}.")
    return UserError(f"{title} can't be installed: {first}.")
