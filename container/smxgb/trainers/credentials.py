"""The key and certificate of a job, with which the processes of its Dask cluster know each other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.supervision.messages import Rendezvous

AGES = timedelta(days=1), timedelta(days=60)
"""How long before and after now the certificate is valid: clocks differ, and a job takes 28 days at most."""


def make_credentials() -> dict[str, str]:
    """Return a new key and its certificate, as PEM; nothing of them is written to a disk.

    The certificate is its own authority, and all processes of the cluster have this one: each admits only who
    has the key too.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "smxgb")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - AGES[0])
        .not_valid_after(now + AGES[1])
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {"key": private.decode(), "certificate": certificate.public_bytes(Encoding.PEM).decode()}


def security_of(meeting: Rendezvous) -> Any:
    """Return what makes a process of Dask speak to none but those that have the job's key."""
    from distributed.security import Security  # noqa: PLC0415 - configured first

    key, certificate = (str(meeting.arguments[name]) for name in ("key", "certificate"))
    roles: Mapping[str, str] = {
        f"tls_{role}_{kind}": text
        for role in ("client", "scheduler", "worker")
        for kind, text in (("key", key), ("cert", certificate))
    }
    return Security(tls_ca_file=certificate, require_encryption=True, **roles)
