"""Every error Docferry raises on purpose.

DocferryError                     code, reason, remedy; `retryable` says whether the same call may succeed later
├── InputError                    what was handed in cannot be used
│   ├── UnreadableImage           empty, truncated, not an image, a format we do not read
│   ├── ImageTooLarge             more pixels or bytes than the stated limit
│   ├── NotFound                  a file or a resource that is not there
│   └── TooFewLabels              a claim that the labelled documents cannot bear
├── ConfigurationError            an unknown key, a wrong value, a missing extra
├── ModelError                    a model that is missing, damaged or has the wrong hash
├── EnvelopeError                 an envelope that breaks the contract
│   ├── EnvelopeTooLarge          over the limit in size, or in ratio when unpacked
│   └── UnsupportedVersion        a peer that speaks a protocol we do not
├── Conflict                      the same id with a different body; a state that forbids the call
├── Outdated                      a change to a version that is no longer the newest
├── PixelsUnavailable             the call needs a picture that is not here and cannot be fetched
├── HistoryGone                   the events asked for are no longer kept
├── Unauthenticated               no token or key, or one that is not valid
│   └── Forbidden                 a valid key that does not allow this call
├── Unimplemented                 in the contract, not yet in this release
├── Overloaded                    a bounded queue is full; try again after `retry_after` seconds
├── StorageFull                   the disk or the stated ceiling is reached; nothing was taken
├── Unavailable                   the other end cannot be reached
├── TooLate                       the caller's own deadline passed before the work was begun
└── EngineError                   the engine failed on this document
    └── ReaderStopped             the edge's reader died, hung or outgrew its memory while reading it
"""

from __future__ import annotations


class DocferryError(Exception):
    """Base of all; its text names the thing, the reason and the remedy.

    Args:
        reason: What is wrong, naming the thing.
        remedy: What the reader can do about it.
        metadata: Everything dynamic in the reason, by key (AIP-193).
    """

    code = "INTERNAL"
    retryable = False

    def __init__(self, reason: str, *, remedy: str = "", **metadata: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
        self.metadata = metadata

    def __str__(self) -> str:
        return f"{self.reason} ({self.remedy})" if self.remedy else self.reason

    def as_dict(self) -> dict[str, str]:
        """The `error` object of a failed document in `--json` output."""
        return {"code": self.code, "reason": self.reason, "remedy": self.remedy}


class InputError(DocferryError):
    """What was handed in cannot be used."""

    code = "INVALID_INPUT"


class UnreadableImage(InputError):
    """Empty, truncated, not an image, or a format we do not read."""

    code = "UNREADABLE_IMAGE"


class ImageTooLarge(InputError):
    """More pixels or bytes than the stated limit."""

    code = "IMAGE_TOO_LARGE"


class NotFound(InputError):
    """A file or a resource that is not there."""

    code = "NOT_FOUND"


class TooFewLabels(InputError):
    """A claim about risk that the labelled documents cannot bear."""

    code = "TOO_FEW_LABELS"


class ConfigurationError(DocferryError):
    """An unknown key, a wrong value, a missing extra."""

    code = "CONFIGURATION"


class ModelError(DocferryError):
    """A model that is missing, damaged or has the wrong hash."""

    code = "MODEL"


class EnvelopeError(DocferryError):
    """An envelope that breaks the contract."""

    code = "INVALID_ENVELOPE"


class EnvelopeTooLarge(EnvelopeError):
    """Over the limit in size, or in ratio when unpacked."""

    code = "ENVELOPE_TOO_LARGE"


class UnsupportedVersion(EnvelopeError):
    """A peer that speaks a protocol version we do not."""

    code = "UNSUPPORTED_VERSION"


class Conflict(DocferryError):
    """The same id with a different body, or a state that forbids the call."""

    code = "CONFLICT"


class Outdated(DocferryError):
    """A change to a version that is no longer the newest: look at that one first."""

    code = "OUTDATED"


class PixelsUnavailable(DocferryError):
    """The call needs a picture that is not here and cannot be fetched from the device."""

    code = "PIXELS_UNAVAILABLE"


class HistoryGone(DocferryError):
    """The events asked for are no longer kept: list again, then watch from now."""

    code = "HISTORY_GONE"


class Unauthenticated(DocferryError):
    """No token or key, or one that is not valid."""

    code = "UNAUTHENTICATED"


class Forbidden(Unauthenticated):
    """A valid key that does not allow this call."""

    code = "FORBIDDEN"


class Unimplemented(DocferryError):
    """In the contract, not yet in this release."""

    code = "UNIMPLEMENTED"


class Overloaded(DocferryError):
    """A bounded queue is full; try again after `retry_after` seconds."""

    code = "OVERLOADED"
    retryable = True

    def __init__(self, reason: str, *, retry_after: float, remedy: str = "", **metadata: str) -> None:
        super().__init__(reason, remedy=remedy or f"try again in {retry_after:g} s", **metadata)
        self.retry_after = retry_after


class StorageFull(DocferryError):
    """The disk or the stated ceiling is reached; nothing was taken."""

    code = "STORAGE_FULL"
    retryable = True


class Unavailable(DocferryError):
    """The other end cannot be reached."""

    code = "UNAVAILABLE"
    retryable = True


class TooLate(DocferryError):
    """The caller's own deadline passed before the work was begun."""

    code = "TOO_LATE"


class EngineError(DocferryError):
    """The engine failed on this document."""

    code = "ENGINE"


class ReaderStopped(EngineError):
    """The edge's reader died, hung or outgrew its memory while it read this document."""

    code = "READER_STOPPED"
