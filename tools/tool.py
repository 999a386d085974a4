"""Helps the tools in Python: a mistake of the user ends them with one sentence and exit status 2."""

import argparse
import contextlib
import errno
import os
import pathlib
import sys

MISTAKE = 2  # exit status for errors that the user has to fix
FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
OUTPUT_FAULTS = (*FULL_DISK, errno.EIO)


class Mistake(Exception):
    """A mistake of the user, described in one sentence."""


class Parser(argparse.ArgumentParser):
    """Refuses empty words, as an unset variable of a shell leaves them."""

    def __init__(self, **options):
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def error(self, message):
        raise Mistake(f"{message}; see --help")

    def parse_known_args(self, args=None, namespace=None):
        if "" in (sys.argv[1:] if args is None else args):
            self.error("an argument is empty: give it a value, or leave it out")
        return super().parse_known_args(args, namespace)


def run_tool(main, *mistakes):
    """Runs main() and returns the exit status: its result, or 0 for None. Exceptions of the types `mistakes`
    also count as mistakes of the user."""
    sys.stdout.reconfigure(errors="replace")  # the locale may lack a letter
    try:
        status = main()
        sys.stdout.flush()
        return status or 0
    except (Mistake, *mistakes) as mistake:
        return say(mistake, MISTAKE)
    except BrokenPipeError:
        give_up_output()
        return 1
    except OSError as error:
        if error.filename is not None and error.errno in FULL_DISK:
            return say(f"cannot write '{error.filename}': {error.strerror}; free space or name another place", MISTAKE)
        if error.filename is not None or error.errno not in OUTPUT_FAULTS:
            raise
        give_up_output()
        return say(f"cannot write to the standard output: {error.strerror}; give it a file or a reader that takes it", MISTAKE)


def say(sentence, status):
    print(f"{pathlib.Path(sys.argv[0]).name}: {sentence}", file=sys.stderr)
    return status


def give_up_output():
    """Sends the rest of the output to nowhere, as Python would fail again when it flushes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def root_of_words(words):
    """Returns the folder that is the only argument of a check or, without arguments, the tree that contains
    these tools."""
    parser = Parser(description="Checks the tree of sources in ROOT.")
    parser.add_argument("root", nargs="?", type=pathlib.Path, metavar="ROOT", default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args(words).root
    if not root.is_dir():
        raise Mistake(f"'{root}' is not a folder; name the root of a tree of sources")
    return root


def require_program(build, name):
    """Returns the path of a program in the build, which must exist."""
    program = pathlib.Path(build) / name
    if not program.is_file():
        raise Mistake(f"there is no '{program}'; build it first: cmake --preset release && cmake --build --preset release --target {program.name}")
    return program


def require_modules(*names):
    import importlib.util

    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise Mistake(f"this Python ({sys.executable}) has no {' and no '.join(missing)}; --help says how to make one that has")


@contextlib.contextmanager
def whole_file(path):
    """Opens a file for bytes that appears under its name completely or not at all. An OSError has the name of the file."""
    path = pathlib.Path(path)
    unfinished = path.with_name(f".{path.name}.unfinished-{os.getpid()}")
    try:
        with open(unfinished, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    finally:
        unfinished.unlink(missing_ok=True)
