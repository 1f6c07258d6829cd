"""AWS's refusals as sentences with the cure, for the programs that talk to it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

FORBIDDEN = 403
DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
EXPIRED = {
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}


class AwsError(Exception):
    """Why AWS does not do what it is asked, in one sentence with the cure."""


@contextmanager
def explained(action: str, region: str | None) -> Iterator[None]:
    """Turn what AWS's client raises into an `AwsError`; `action` is the permission that the call needs."""
    try:
        yield
    except (NoCredentialsError, PartialCredentialsError):
        raise AwsError(
            "there are no AWS credentials: run `aws configure` or `aws sso login`, or set AWS_PROFILE, or "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        ) from None
    except EndpointConnectionError as error:
        raise AwsError(f"AWS cannot be reached ({error}): is {region} the right region?") from None
    except ClientError as error:
        code, text = error.response["Error"]["Code"], error.response["Error"]["Message"]
        if code in EXPIRED:
            raise AwsError(f"AWS does not take the credentials ({text}): renew them.") from None
        if code in DENIED or error.response["ResponseMetadata"]["HTTPStatusCode"] == FORBIDDEN:
            raise AwsError(f"the permission {action} is missing: {text}") from None
        raise AwsError(f"{action} failed: {text} ({code}).") from None
    except BotoCoreError as error:
        raise AwsError(f"{action} failed: {error}") from None
