"""Carries a build to a machine that lacks the libraries to make one: programs, tests, the plugin, and the
shared libraries that they need. NVIDIA's own libraries are not included, as they are large and come with
PyTorch."""

import contextlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile

from machine import UserError
from plugin import SDK, sdk_files
from tests_of_build import gpu_tests

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 63 << 20  # for the archive and the tree together
PROGRAMS = ["models/mlp", "models/convnet", "models/resnet", "dev/bench", "tools/draw_shapes", "dev/dump_gradients",
            "tests/cuda_tests", "tests/core_tests", "tests/ops_tests", "tests/contract_tests"]
SHARED = ["core/*.so", "core/plexaura_described/*.so", "tests/*.so", "tests/plugins/**/*.so*"]
# Libraries that every Linux has, and those of NVIDIA.
STAYS = re.compile(r"(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv|cuda|cudart|cublas|cublasLt|cudnn\w*|nvrtc|nvJitLink))\.so")
# Lacks a library on purpose, for a test.
LACKS_BY_DESIGN = {"plexaura_lacking.so"}


def libraries_of(files, environment=None):
    """Returns name -> path of all shared libraries that the loader finds, and the names of those that it does
    not find."""
    found, missing = {}, set()
    for file in files:
        said = subprocess.run(["ldd", file], capture_output=True, text=True, env=environment).stdout
        for line in said.splitlines():
            match = re.match(r"\s*(\S+) => (not found|\S+)", line)
            if match and match[2] != "not found":
                found[match[1]] = pathlib.Path(match[2])
            elif match and file.name not in LACKS_BY_DESIGN:
                missing.add(match[1])
    return found, missing


def newest_glibc(files):
    """Returns the lowest version of glibc that can run the files."""
    wanted = {(2, 0)}
    for file in files:
        wanted |= {(int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", file.read_bytes())}
    return max(wanted)


def files_of(build, stand_in):
    """Returns the files to pack. The build of a stand-in for the GPU has no plugin and no tests of it."""
    optional = {"tests/cuda_tests"} if stand_in else set()
    missing = [name for name in PROGRAMS if not (build / name).exists() and name not in optional]
    if not stand_in and not (build / "core/plexaura_cuda.so").exists():
        missing.append("core/plexaura_cuda.so")
    if missing:
        raise UserError(f"{build} lacks {', '.join(missing)}; build with: cmake --preset cuda && cmake --build --preset gpu")
    programs = [build / name for name in PROGRAMS if (build / name).exists()]
    return programs, sorted({file for pattern in SHARED for file in build.glob(pattern) if file.is_file()})


def cached_path(build, name):
    match = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(encoding="utf-8"), re.M)
    return match[1] if match else ""


def pack(archive, build, commit, sizes, stand_in, at_home=None):
    """Writes the archive, and returns its size in bytes. `at_home` maps names to results that were found here
    and are looked up on the other machine."""
    if shutil.which("strip") is None:
        raise UserError("this machine lacks strip, without which the archive would be too large; install binutils")
    programs, shared = files_of(build, stand_in)
    found, missing = libraries_of([*programs, *shared])
    missing = sorted(name for name in missing if not STAYS.match(name))
    if missing:
        raise UserError(f"{build} needs {', '.join(missing)}, which this machine does not find; pack on the machine that built it")
    carried = {name: path for name, path in found.items() if not STAYS.match(name) and build not in path.parents}
    with tempfile.TemporaryDirectory(prefix="gpu-pack-", dir=archive.resolve().parent) as name:
        root = pathlib.Path(name)
        copies = [(file, root / "build" / file.relative_to(build)) for file in [*programs, *shared]]
        copies += [(path, root / "lib" / library) for library, path in carried.items()]
        for source, target in copies:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        subprocess.run(["strip", "--strip-unneeded", *(target for _, target in copies)], check=True)
        for source, place in sdk_files(build).items():
            target = root / SDK / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        manifest = {"commit": commit, "stand_in": stand_in, "glibc": newest_glibc(target for _, target in copies),
                    "source": cached_path(build, "CMAKE_HOME_DIRECTORY"), "build": cached_path(build, "CMAKE_CACHEFILE_DIR"),
                    "programs": [str(file.relative_to(build)) for file in programs], "tests": gpu_tests(build, sizes.tests), **(at_home or {})}
        (root / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        partial = archive.with_name(archive.name + ".partial")
        with tarfile.open(partial, "w:xz", preset=sizes.compression) as tar:
            for entry in sorted(root.iterdir()):
                tar.add(entry, entry.name)
    size, tree = partial.stat().st_size, bytes_of_tree(SOURCE)
    if size + tree >= MOST_BYTES:
        partial.unlink()
        raise UserError(f"the archive would have {size >> 20} MiB, and may have {(MOST_BYTES - tree) >> 20} beside the tree; build for one kind "
                        "of GPU alone, with -D PLEXAURA_CUDA_ARCHITECTURES=90")
    partial.replace(archive)
    return size


def bytes_of_tree(source):
    """Returns the size of the files that are carried beside the archive: those that git tracks or does not
    ignore. Returns 0 without git."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True)
    files = [source / name for name in listed.stdout.split("\0") if name]
    return sum(file.stat().st_size for file in files if file.is_file())


def read_manifest(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def unpack(archive, folder, library_folders, stand_in=False):
    """Unpacks the archive to `folder`, makes it ready to run, and returns its manifest. Contents that were
    unpacked before stay until the new ones are complete. A folder with other contents is not touched."""
    if folder.exists() and not (folder / "manifest.json").exists():
        raise UserError(f"{folder} is in the way, and was not unpacked by dev/gpu_check --from; move it elsewhere")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as name:
        fresh = pathlib.Path(name) / folder.name
        manifest = extract(archive, fresh)
        check_manifest(archive, manifest, stand_in)
        check_complete(archive, fresh, library_path(fresh, library_folders))
        for program in manifest["programs"]:
            wrap(fresh / "build" / program, folder / "build" / program, library_path(folder, library_folders), folder / "build/tests/plugins")
        if folder.exists():
            shutil.rmtree(folder)
        fresh.rename(folder)
    return manifest


def extract(archive, folder):
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        return read_manifest(folder)
    except (OSError, EOFError, tarfile.TarError, ValueError) as error:
        raise UserError(f"{archive} is not an archive of dev/gpu_check --pack: {error}") from None


def check_manifest(archive, manifest, stand_in):
    if manifest.get("stand_in") and not stand_in:
        raise UserError(f"{archive} was packed to test dev/gpu_check itself, without the plugin for GPUs; pack again, without --stand-in")
    here = tuple(int(part) for part in re.findall(r"\d+", platform.libc_ver()[1])[:2])
    if here < tuple(manifest["glibc"]):
        wanted, has = (".".join(map(str, version)) for version in (manifest["glibc"], here))
        raise UserError(f"{archive} needs glibc {wanted}, and this machine has {has}; build on a system that is as old as this one")


def library_path(folder, library_folders):
    return ":".join(map(str, [folder / "lib", folder / "build/core", *library_folders]))


def wrap(program, place, library_path, plugins):
    """Renames the program, and writes a script in its place that sets the library paths. `place` is the
    program's final path."""
    real = program.with_name(program.name + ".program")
    program.rename(real)
    program.write_text("#!/bin/sh\n# Runs the program beside this script with the libraries that were carried along.\n"
                       f'export LD_LIBRARY_PATH="{library_path}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"\n'
                       f'export PLEXAURA_PLUGIN_PATH="{plugins}${{PLEXAURA_PLUGIN_PATH:+:$PLEXAURA_PLUGIN_PATH}}"\n'
                       f'exec "{place}.program" "$@"\n', encoding="utf-8")
    program.chmod(0o755)


def check_complete(archive, folder, path):
    """Checks that the loader finds all shared libraries. If only NVIDIA's are missing, prints that; then the
    plugin does not open, which a later check reports."""
    files = [file for file in (folder / "build").rglob("*") if file.is_file()]
    lacking = sorted(libraries_of(files, dict(os.environ, LD_LIBRARY_PATH=path))[1])
    missing = [name for name in lacking if not STAYS.match(name)]
    if missing:
        raise UserError(f"{archive} needs {', '.join(missing)}, which this machine lacks; build on a system as this one")
    if lacking:
        print(f"this machine lacks {', '.join(lacking)}; NVIDIA's libraries come with PyTorch: name the Python that has it with --python, or set "
              "CUDA_PATH or LD_LIBRARY_PATH", flush=True)


@contextlib.contextmanager
def standing_in_for(manifest, folder):
    """Makes links, for the time of the context, at the paths of tree and build that were compiled into the
    tests."""
    with contextlib.ExitStack() as made:
        for there, copy in ((manifest["source"], SOURCE), (manifest["build"], folder / "build")):
            stand_at(pathlib.Path(there), copy, made)
        yield


def remove(it):
    try:
        it()
    except OSError as error:
        print(f"{error.filename} stays: {error.strerror}", flush=True)


def stand_at(place, copy, made):
    """Makes a link unless something is at that path already. `made` collects the functions that remove it."""
    if place.exists():
        if not place.samefile(copy):
            print(f"some tests look for files in {place}, and not in {copy}", flush=True)
        return
    try:
        for parent in reversed([parent for parent in place.parents if not parent.exists()]):
            parent.mkdir()
            made.callback(remove, parent.rmdir)
        place.symlink_to(copy.resolve())
        made.callback(remove, place.unlink)
        print(f"{place} is a link to {copy} until this ends, for some tests look for files there", flush=True)
    except OSError as error:
        print(f"some tests look for files in {place}, which cannot be made: {error.strerror}", flush=True)
