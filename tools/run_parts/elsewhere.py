"""Ranks of a job on other machines: what they have told by its end, in a folder of output that these share with the launcher's."""

import contextlib
import os
import pathlib
import re

from events import SECONDS_OF_NEWS, Rank, open_events


def folders_of_output(links, program):
    """Where the ranks of this machine keep their events. There may be none: then what the program may take for output.dir, from its words and the files that these name."""
    folders = {pathlib.Path(os.readlink(link)).parent for link in links if link.is_symlink()}
    texts = [word for word in program if re.search(r"\boutput\b", word)]
    for word in program:
        with contextlib.suppress(OSError, ValueError):
            texts += [pathlib.Path(word).read_text()] if word.endswith((".yaml", ".yml")) else []
    names = {name.strip() for text in texts for name in re.findall(r"\bdir\s*[:=]\s*['\"]?([^'\"#,}\n]+)", text)}
    return folders or {pathlib.Path(name) / "events" for name in names}


def read_others(links, program, seen, launcher, begun):
    """Those of which `seen` has none. `links`: the files of those on this machine. `launcher`: the number of mpirun, by which Open MPI 5
    names the job. `begun`: when it began, in nanoseconds since 1970, for an older run may have had the same name."""
    jobs = {rank.job for rank in seen}
    numbers, found = {rank.rank for rank in seen}, []
    for path in sorted(path for folder in folders_of_output(links, program) for path in folder.glob("rank-????")):
        with contextlib.suppress(OSError, ValueError), open_events(path) as file:
            rank = Rank(file)
            is_of_job = rank.job in jobs if jobs else re.fullmatch(rf".+-{launcher}@\d+", rank.job)
            if is_of_job and rank.rank not in numbers and rank.wall_time > begun - SECONDS_OF_NEWS * 10**9:
                rank.is_over = True  # as mpirun is
                numbers.add(rank.rank)
                found.append(rank)
    return found
