"""Few functions lead from main to a message of MPI in training, and enter each folder once."""

import itertools
import os
import pathlib
import re
import subprocess
import sys

import support
from support import BUILD, HAS_MPI, SOURCE, ProgramTest

BUILD_TYPE = re.search(r"^CMAKE_BUILD_TYPE:\w+=(\w*)", (BUILD / "CMakeCache.txt").read_text(), re.M).group(1)
# The most functions that may lead to a message, with main and MPI_Isend.
MOST = 24
CALL = re.compile(r"([^\t\n]+)\+(0x[0-9a-f]+)\t")


def resolve(module, addresses):
    """Returns "function" and "file" for each of the addresses to which functions of the module return."""
    before = [hex(int(address, 16) - 1) for address in addresses]  # within the call, and not after it
    command = ["addr2line", "--exe", module, "--functions", "--demangle", *before]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return list(zip(lines[::2], lines[1::2]))


def ways_from_main(text):
    """Returns the ways that begin in main: of each the functions and their files, from main to MPI_Isend."""
    calls = sorted(set(CALL.findall(text)))
    functions = {}
    for module, group in itertools.groupby(calls, lambda call: call[0]):
        addresses = [address for _, address in group]
        functions.update(zip(((module, address) for address in addresses), resolve(module, addresses)))
    for line in text.splitlines(keepends=True):
        way = [functions[call] for call in reversed(CALL.findall(line))]
        begin = next((i for i, (name, _) in enumerate(way) if name == "main"), None)
        if begin is not None:
            yield way[begin:]


def folder_of(file):
    """Returns the folder of the project in which a source lies, or None for those of libraries."""
    path = pathlib.Path(os.path.normpath(file.rpartition(":")[0]))
    return path.relative_to(SOURCE).parts[0] if path.is_relative_to(SOURCE) else None


def folders_on(way):
    """Returns the folders of the project in the order in which the calls enter them, without the tests."""
    folders = [folder for _, file in way if (folder := folder_of(file)) not in (None, "tests")]
    return [folder for folder, _ in itertools.groupby(folders)]


def is_of_training(way):
    return any("::train_in_lock_step(" in name for name, _ in way)


def sends_gradients(way):
    return any("::BucketSum::before_update(" in name for name, _ in way)


class Depth(ProgramTest):
    def ways(self, *settings):
        """Returns the ways that lead to messages of training, of both ranks."""
        arguments = self.iris("training.epochs=1", "training.batch_size=50", "output.dir=run", *settings)
        self.mpirun(2, ["env", f"PLEXAURA_CALLS={self.folder / 'calls'}", BUILD / "tests/programs/counted_mlp", *arguments])
        texts = [(self.folder / f"calls.{rank}").read_text() for rank in range(2)]
        return [way for text in texts for way in ways_from_main(text) if is_of_training(way)]

    def check(self, ways):
        self.assertTrue(ways, "training has sent no message")
        for way in ways:
            text = f"{len(way)} functions:\n" + "\n".join(f"  {name} at {file}" for name, file in way)
            self.assertLessEqual(len(way), MOST, text)
            folders = folders_on(way)
            self.assertEqual((folders[0], folders[-1]), ("app", "distributed"), text)
            self.assertEqual(len(folders), len(set(folders)), f"{' -> '.join(folders)} enters a folder twice; {text}")

    def test_steps_of_ranks_that_share_memory(self):
        ways = self.ways()
        self.check(ways)
        self.assertFalse(any(map(sends_gradients, ways)))

    def test_steps_that_send_their_gradients(self):
        ways = self.ways("distributed.algorithm=ring")
        self.check([way for way in ways if not sends_gradients(way)])
        self.check([way for way in ways if sends_gradients(way)])


if __name__ == "__main__":
    if not HAS_MPI or BUILD_TYPE != "Debug":
        print("skipped: built without MPI" if not HAS_MPI else
              f"skipped: the build type is {BUILD_TYPE}, in which functions are inlined; build the preset debug")
        sys.exit(77)
    support.main()
