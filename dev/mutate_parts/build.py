"""The copy of the sources with faults, and its build."""

import os
import re
import subprocess
import sys

from faults import sow

# A position in the compiler's output: in an error, in a note, or in `inlined from F at FILE:1:2`.
PLACE = re.compile(r"(?:^| at )([^:\s]+):(\d+):(\d+)(.*)", re.M)


def project_files(root):
    """Returns the files that belong to the tree, committed or not."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True,
                            capture_output=True, text=True).stdout
    return {name for name in listed.split("\0") if name and (root / name).is_file()}


class Copy:
    """A copy of the tree with many faults, each with a number that switches it on."""

    def __init__(self, folder, faults):
        self.folder, self.build = folder, folder / "build"
        self.faults = faults
        self.refused = []  # faults that the compiler refused
        self.originals = {}

    def fill(self, root):
        names = project_files(root)
        # CMake compiles every source in a folder, so removed sources must be deleted.
        for path in self.folder.rglob("*.cpp"):
            if not path.is_relative_to(self.build) and path.relative_to(self.folder).as_posix() not in names:
                path.unlink()
        sown = {fault.file for fault in self.faults}
        for name in names - sown:
            put(self.folder / name, (root / name).read_bytes(), (root / name).stat().st_mode)
        self.originals = {name: (root / name).read_text(encoding="utf-8") for name in sown}
        self.sow(sown)

    def sow(self, names):
        for name in names:
            sown = [fault for fault in self.faults if fault.file == name and fault not in self.refused]
            put(self.folder / name, f'#include "{name}.sown"\n'.encode(), 0o644)
            put(self.folder / f"{name}.sown", sow(self.originals[name], sown, name).encode(), 0o644)

    def make(self, targets, jobs):
        """Builds the targets, and leaves out faults that the compiler refuses.

        The checks of the standard library are on, so that reading past an end is noticed. GCC 12 warns about
        memory that these checks themselves free, so that warning is off.
        """
        configure = ["cmake", "-S", self.folder, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                     "-DCMAKE_CXX_FLAGS=-D_GLIBCXX_ASSERTIONS -Wno-free-nonheap-object"]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
        while True:
            ninja = subprocess.run(["ninja", "-C", self.build, "-k", "0", f"-j{jobs}", *targets], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if ninja.returncode == 0:
                return
            refused = [fault for fault in self.named_in(ninja.stdout) if fault not in self.refused]
            if not refused:
                sys.exit(f"{ninja.stdout[-8000:]}\nmutate: the copy does not build, and the compiler names no fault")
            self.refused += refused
            print(f"{len(refused)} faults do not compile and are left out", flush=True)
            self.sow({fault.file for fault in refused})

    def named_in(self, output):
        """Returns the faults at the positions of the compiler's errors or, if there are none, of its notes.
        """
        errors, notes = [], []
        for name, line, column, text in PLACE.findall(output):
            (errors if "error:" in text else notes).extend(self.at(name, int(line), int(column)))
        numbers = set(errors or notes)
        return [fault for fault in self.faults if fault.number in numbers]

    def at(self, name, line, column):
        """Returns the number of the last fault whose switch is before this column, or those of all faults on
        the line. A switch may be lines after the start of its fault, as at the end of a loop."""
        sown = self.folder / f"{name}.sown"
        if not sown.is_file():
            return []
        # The file begins with the three lines of faults.HEAD, so line N of the source has the index N + 2.
        text = sown.read_text(encoding="utf-8").splitlines()[line + 2]
        before = re.findall(r"\bmutant\((\d+)\)", text[:column])
        return [int(before[-1])] if before else [fault.number for fault in self.faults if (fault.file, fault.line) == (name, line)]


def put(path, content, mode):
    """Writes a file only if its contents change, so that little is built again."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.chmod(path, mode)
