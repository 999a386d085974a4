"""Texts of others, such as names of files and hosts, shown so that a terminal takes nothing in them for a command."""

import contextlib
import sys
import unicodedata

LONGEST = 300  # characters of a path that a sentence shows


def say(sentence):
    """For the user of tools/run. Nobody may be there to read it any more."""
    with contextlib.suppress(OSError):
        print(printable(f"run: {sentence}"), file=sys.stderr, flush=True)


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
