"""Implements --pace and --slow: ranks that compute as slowly as asked for, with the backend `paced`, so that
a few cores carry many ranks."""

import os
import pathlib

from inputs import Mistake

PLUGIN = "plexaura_paced.so"


def add_options(group):
    group.add_argument("--pace", type=float, metavar="TIMES", help="with --measure: each kernel takes TIMES times as long as is expected of this processor")
    group.add_argument("--slow", type=float, metavar="TIMES", help="with --pace: the last rank takes TIMES times as long as the others")


def check(options):
    for name, least in (("pace", 0), ("slow", 1)):
        value = getattr(options, name)
        if value is not None and not least <= value < float("inf"):
            raise Mistake(f"--{name} is {value:g}; it must be {least} or more")
    if options.slow and options.pace is None:
        raise Mistake("--slow is for ranks whose pace is set; give --pace, too")
    if options.pace is not None:
        folder_of_plugin(options.program)


def folder_of_plugin(program):
    """Returns the folder of plugins in the build of PROGRAM, which may follow other words."""
    files = [path for path in map(pathlib.Path, program) if path.is_file()]
    folders = [path.resolve().parent.parent / "tools" for path in files]
    found = next((folder for folder in folders if (folder / PLUGIN).is_file()), None)
    if found is None:
        raise Mistake(f"--pace needs {PLUGIN} in the folder tools of the build that PROGRAM belongs to; build all of it")
    return found


def settings(options):
    """Turns off the cache of kernel times, as times at this pace mean nothing elsewhere."""
    return [] if options.pace is None else ["training.tuning=off"]


def words(options, ranks, trainers):
    """Returns the words that slow ranks down. The last rank trains with every strategy."""
    if options.pace is None:
        return []
    slow = f",slow={options.slow:g},slow_rank={ranks - 1}" if options.slow and trainers > 1 else ""
    return ["--backend", f"paced:times={options.pace:g}{slow}"]


def environment(options):
    if options.pace is None:
        return {}
    folders = [str(folder_of_plugin(options.program)), os.environ.get("PLEXAURA_PLUGIN_PATH", "")]
    return {"PLEXAURA_PLUGIN_PATH": ":".join(filter(None, folders))}


def of_ideal(options, samples_per_second, of_one, trainers):
    """Returns the share of the speed that the ranks would reach without waiting, or None if the speed of a
    rank is not known."""
    if options.pace is None or of_one is None:
        return None
    slow = 1 / options.slow if options.slow and trainers > 1 else 1
    return samples_per_second / (of_one * (trainers - 1 + slow))
