"""Code that users submit: a folder, an archive, or an archive in S3, made into a folder of files.

Training scripts and inference scripts are both fetched here. Only code that lies in S3 needs more than
Python.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from urllib.parse import urlparse

from smxgb.errors import PlatformError, UserError

ARCHIVE = "sourcedir.tar.gz"
"""What SageMaker's SDK calls the archive of a user's code."""


def place_of(address: str) -> Path | None:
    """Return the path of code that this host holds: a path, or `file://` and a path; None for any other."""
    parts = urlparse(address)
    if parts.scheme not in {"", "file"}:
        return None
    return Path(parts.path if parts.scheme else address)


def fetch(address: str, folder: Path, name: str, region: str | None = None) -> Path:
    """Return a folder with the submitted code; it is `folder` if there is an archive to be unpacked.

    Args:
        address: A folder, an archive (tar, compressed or not), or `s3://` and the place of an archive.
        folder: Where an archive is unpacked; it is made if it is not there.
        name: What messages call the address, as sagemaker_submit_directory.
        region: The region of the bucket, None for that of the environment.

    Raises:
        UserError: If there is no such code, or an archive would write outside of the folder.
        PlatformError: If S3 does not hand it out.
    """
    place = place_of(address)
    if place is None:
        place = _download(address, folder.with_name(f"{folder.name}-{ARCHIVE}"), name, region)
    if place.is_dir():
        return place
    if not place.is_file():
        raise UserError(f"{name}={address} does not exist.")
    _unpack(place, folder)
    return folder


def copy(place: Path, folder: Path) -> None:
    """Copy a folder of code to another place, where it may be written beside."""
    shutil.copytree(place, folder, symlinks=True, dirs_exist_ok=True)


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive, and nothing that would lie, or lead, outside of the folder (PEP 706)."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
    except tarfile.FilterError as error:
        held = error.tarinfo.name if error.tarinfo else "a file"
        raise UserError(
            f"{archive} holds {held!r}, which lies or leads outside of the code's folder, or is no file at "
            "all: nothing is run. Make the archive of plain files, from within their folder."
        ) from None
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"{archive} is no archive that tar can unpack ({error}): make it again.") from None


def _download(address: str, place: Path, name: str, region: str | None) -> Path:
    """Download an archive from S3."""
    parts = urlparse(address)
    if parts.scheme != "s3":
        raise UserError(f"{name}={address} must begin with s3:// or file://, or be a path.")
    import boto3  # noqa: PLC0415 - few jobs have their code in S3
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        boto3.client("s3", region_name=region).download_file(parts.netloc, parts.path.lstrip("/"), str(place))
    except (BotoCoreError, ClientError) as error:
        raise PlatformError(
            f"{name}={address} can't be downloaded: {error}. Check the address, and that the job's role may "
            "read it; with network isolation, give the code as a channel named code."
        ) from None
    return place
