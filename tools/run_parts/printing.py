"""Texts of others, such as names of files and hosts, shown so that a terminal takes nothing in them for a command."""

import contextlib
import os
import select
import unicodedata

LONGEST = 300  # characters of a path that a sentence shows
PATIENCE = 0.2  # seconds for a reader that has stopped reading


def say(sentence):
    """For the user of tools/run. It is lost where nobody reads it any more."""
    text = printable(f"run: {sentence}").encode(errors="replace") + b"\n"
    with contextlib.suppress(OSError):
        while text and select.select([], [2], [], PATIENCE)[1]:
            text = text[os.write(2, text[:select.PIPE_BUF]):]


def printable(text):
    """With control characters, and bytes that are no UTF-8, as \\xNN."""
    return "".join(shown(character) for character in text)


def shown(character):
    if unicodedata.category(character) not in ("Cc", "Cs"):  # controls, and what os.fsdecode() makes of such bytes
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogateescape"))


def short(path):
    text = str(path)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
