"""The copy of the sources in which faults are sown, and its build."""

import os
import re
import subprocess
import sys

from faults import sow

# Of an error, of a note, or where it says `inlined from F at FILE:1:2`.
PLACE = re.compile(r"(?:^| at )([^:\s]+):(\d+):(\d+)(.*)", re.M)


def project_files(root):
    """The files that belong to the tree, committed or not."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True,
                            capture_output=True, text=True).stdout
    return {name for name in listed.split("\0") if name and (root / name).is_file()}


class Copy:
    """A copy of the tree with many faults in it, each switched on by its number."""

    def __init__(self, folder, faults):
        self.folder, self.build = folder, folder / "build"
        self.faults = faults
        self.refused = []  # by the compiler
        self.originals = {}

    def fill(self, root):
        names = project_files(root)
        for path in self.folder.rglob("*.cpp"):  # CMake takes every one that lies in a folder
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
        """Builds the targets; faults that the compiler refuses are left out.

        With the checks of the standard library, so that a fault that reads past an end or what is not there is noticed. GCC 12 warns
        of what these checks themselves free.
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
        """The faults that a compiler's errors name, or else its notes."""
        errors, notes = [], []
        for name, line, column, text in PLACE.findall(output):
            (errors if "error:" in text else notes).extend(self.at(name, int(line), int(column)))
        numbers = set(errors or notes)
        return [fault for fault in self.faults if fault.number in numbers]

    def at(self, name, line, column):
        """The number of the fault that begins last before this column, or else those of all on this line."""
        of_line = [fault.number for fault in self.faults if (fault.file, fault.line) == (name, line)]
        if not of_line:
            return []
        text = (self.folder / f"{name}.sown").read_text(encoding="utf-8").splitlines()[line + 2]  # below HEAD
        before = re.findall(r"\bmutant\((\d+)\)", text[:column])
        return [int(before[-1])] if before else of_line


def put(path, content, mode):
    """Writes a file only where it changes, so that little is built again."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.chmod(path, mode)
