"""A folder in which Plexaura was built, and the files there and in its source tree."""

import os
import pathlib
import re
import shutil
import subprocess

from tool import Mistake

RECORDER = pathlib.Path(__file__).with_name("recorder.cpp")


class Skipped(Exception):
    """Says why this build or machine cannot run a configuration."""


class Build:
    def __init__(self, name, folder):
        self.name, self.folder = name, pathlib.Path(folder).resolve()
        cache = self.folder / "CMakeCache.txt"
        if not cache.is_file():
            raise Mistake(f"{name}, '{folder}', is not a build: it has no CMakeCache.txt; name a folder such as build/")
        self.cache = dict(re.findall(r"^(\w+):\w+=(.*)$", cache.read_text(encoding="utf-8", errors="replace"), re.M))
        self.source = pathlib.Path(self.cache.get("CMAKE_HOME_DIRECTORY", ""))
        if self.cache.get("CMAKE_PROJECT_NAME") != "Plexaura" or not self.source.is_dir():
            raise Mistake(f"{name}, '{folder}', is not a build of Plexaura whose sources are there; name one")
        if not self.find(self.folder, "mlp"):
            raise Mistake(f"{name}, '{folder}', has no program mlp; build it: cmake --build {folder} --target mlp convnet resnet graph draw_shapes")
        self.recorder = None

    @staticmethod
    def find(folder, name, depth=1):
        """Returns the first file of that name, `depth` folders down."""
        return next((path for path in sorted(folder.glob("*/" * depth + name)) if path.is_file()), None)

    def program(self, name):
        found = self.find(self.folder, name) or self.find(self.folder, name, 2)
        if not found:
            raise Skipped(f"{self.name} has not built {name}")
        return found

    def shipped(self, name):
        """Returns the path of a file of models/."""
        found = self.find(self.source, name)
        if not found:
            raise Skipped(f"the sources of {self.name} have no {name}")
        return found

    def plugins(self, backend):
        """Returns the folder of the plugin for this backend."""
        found = self.find(self.folder, f"plexaura_{backend}.so", 2)
        if not found:
            raise Skipped(f"{self.name} has not built the backend {backend}")
        return found.parent

    @property
    def has_mpi(self):
        return self.cache.get("PLEXAURA_MPI") == "ON"

    def make_recorder(self, folder):
        """Compiles recorder.cpp with this build's own header of events."""
        header = next(iter(sorted((self.source / "core").rglob("events.h"))), None)
        if not header:
            raise Mistake(f"the sources of {self.name}, '{self.source}', have no events.h in core/")
        include = folder / self.name / "include"
        shim = include / "core/base/events.h"
        shim.parent.mkdir(parents=True)
        shim.write_text(f'#include "{header}"\n')
        made = folder / self.name / "recorder.so"
        command = [self.cache.get("CMAKE_CXX_COMPILER", "c++"), "-std=c++20", "-shared", "-fPIC", "-O1", "-Wl,-z,lazy", *self.mpi_options(),
                   "-I", include, "-I", self.source, RECORDER, "-o", made, "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Mistake(f"'{RECORDER}' does not compile with the sources of {self.name}, '{self.source}': {done.stderr.strip()}")
        self.recorder = made

    def mpi_options(self):
        if not self.has_mpi:
            return []
        if not shutil.which("mpicc"):
            raise Mistake(f"{self.name} uses MPI, but there is no mpicc; put that of Open MPI into PATH")
        return subprocess.run(["mpicc", "--showme:compile"], capture_output=True, text=True, check=True).stdout.split()


def open_mpi_5(builds):
    """Returns the environment that selects the mpirun of Open MPI 5, which the tests install into their
    build."""
    for build in builds:
        folder = build.folder / "open_mpi_5"
        if (folder / "bin/mpirun").exists():
            libraries = [str(folder / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
            return {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LD_LIBRARY_PATH": ":".join(libraries)}
    mpirun = shutil.which("mpirun")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout if mpirun else ""
    return {} if re.search(r"Open MPI\) [5-9]", version) else None
