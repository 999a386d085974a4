"""Prints texts from elsewhere, such as names of files and hosts, so that no terminal interprets them as
commands."""

import contextlib
import os
import select
import unicodedata

LONGEST = 300  # maximum length in characters of a path in a sentence
PATIENCE = 0.2  # seconds to wait for a reader that does not read


def say(sentence):
    """Prints a sentence for the user of tools/run. Drops it if nobody reads the output any more."""
    text = printable(f"run: {sentence}").encode(errors="replace") + b"\n"
    with contextlib.suppress(OSError):
        while text and select.select([], [2], [], PATIENCE)[1]:
            text = text[os.write(2, text[:select.PIPE_BUF]):]


def printable(text):
    r"""Returns the text with control characters and invalid UTF-8 as \xNN."""
    return "".join(shown(character) for character in text)


def shown(character):
    # Control characters are escaped, and the surrogates by which os.fsdecode() represents invalid bytes.
    if unicodedata.category(character) not in ("Cc", "Cs"):
        return character
    if "\udc80" <= character <= "\udcff":
        return f"\\x{character.encode(errors='surrogateescape')[0]:02x}"
    return f"\\u{ord(character):04x}" if character >= "\ud800" else "".join(f"\\x{byte:02x}" for byte in character.encode())


def is_unicode(text):
    """False for a text with half of a surrogate pair, which no encoding has."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def short(path):
    text = str(path)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
