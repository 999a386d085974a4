"""Reads the events of a job's ranks on other machines after its end, if they share a folder of output with
this one."""

import contextlib
import os
import pathlib
import re

from events import SECONDS_OF_NEWS, Rank, open_events


def folders_of_output(links, program):
    """Returns the folders in which ranks of this machine keep their events. If there are none, returns the
    folders that the program may use as output.dir, guessed from its words and from the YAML files that
    these name."""
    folders = {pathlib.Path(os.readlink(link)).parent for link in links if link.is_symlink()}
    texts = [word for word in program if re.search(r"\boutput\b", word)]
    for word in program:
        with contextlib.suppress(OSError, ValueError):
            texts += [pathlib.Path(word).read_text()] if word.endswith((".yaml", ".yml")) else []
    names = {name.strip() for text in texts for name in re.findall(r"\bdir\s*[:=]\s*['\"]?([^'\"#,}\n]+)", text)}
    return folders or {pathlib.Path(name) / "events" for name in names}


def read_others(links, program, seen, launcher, begun):
    """Returns the ranks of this job that `seen` lacks. `links` are the event files of this machine's ranks.
    `launcher` is the process id of mpirun, from which Open MPI 5 makes the job's name. `begun` is the
    job's start in nanoseconds since 1970; it excludes an older run with the same name."""
    jobs = {rank.job for rank in seen}
    numbers, found = {rank.rank for rank in seen}, []
    for path in sorted(path for folder in folders_of_output(links, program) for path in folder.glob("rank-????")):
        with contextlib.suppress(OSError, ValueError), open_events(path) as file:
            rank = Rank(file)
            is_of_job = rank.job in jobs if jobs else re.fullmatch(rf".+-{launcher}@\d+", rank.job)
            if is_of_job and rank.rank not in numbers and rank.wall_time > begun - SECONDS_OF_NEWS * 10**9:
                rank.is_over = True  # mpirun has ended, and so have its ranks
                numbers.add(rank.rank)
                found.append(rank)
    return found
