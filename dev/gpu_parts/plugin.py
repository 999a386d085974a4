"""Checks that the plugin opens on the machine with the GPU. If a carried one does not, compiles another one
there from the sources with nvcc and g++; the archive has the other files that this needs."""

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

from machine import ask_nvidia_smi, compiler

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CUDA = SOURCE / "backends/cuda"
PLUGIN = "core/plexaura_cuda.so"
# Folder in the archive with the files for compiling the plugin.
SDK = "sdk"
MOST_SECONDS = 180  # for compiling
# If there is no GPU, another plugin would not help.
NO_GPU = re.compile(r"needs NVIDIA's driver|finds no GPU")
# Sources in which a multiplication and an addition may be contracted, as in backends/cuda/CMakeLists.txt.
CONTRACTED = ("conv2d", "matmul")


@dataclasses.dataclass
class Plugin:
    opens: bool
    text: str  # shown in the results


def why_closed(check, stage):
    """Returns the error of the program that could not open the plugin, or "" if it opens."""
    done = stage.run("open", check.program("mlp", "iris", "--steps", 1, "--backend", check.backend, output=""), at_most=60, cwd=SOURCE)
    return "" if done.status == 0 and not done.timed_out else done.last_line()


def settle(check, stage, carried):
    """Returns the plugin of the build, or one that is compiled as a replacement. `carried` is the folder of
    an unpacked archive, or None if the build was made here."""
    text = "as carried" if carried else "as built here"
    why = why_closed(check, stage)
    if not why:
        return Plugin(True, text)
    if NO_GPU.search(why):
        return Plugin(True, f"{text}, and {why}")
    print(f"the plugin does not open: {why}", flush=True)
    if carried is None:
        return Plugin(False, f"none that opens: {why}")
    failure = compile_plugin(check, stage, carried) or why_closed(check, stage)
    if failure and not NO_GPU.search(failure):
        return Plugin(False, f"none, so that PyTorch is timed alone: the one that was carried does not open ({why}), and another one: {failure}")
    return Plugin(True, f"compiled on this machine, since the one that was carried does not open ({why})")


def compile_plugin(check, stage, carried):
    """Compiles the plugin and replaces the carried one. Returns the error, or "" on success."""
    nvcc, sdk = compiler(), carried / SDK
    lacking = [name for name, found in (("nvcc", nvcc), ("g++", shutil.which("g++")), (f"{SDK} of the archive", sdk.is_dir())) if not found]
    if lacking:
        return f"this machine has no {', no '.join(lacking)}"
    libraries = nvidia_libraries(check.machine.library_folders())
    objects = check.data / "plugin"
    objects.mkdir(parents=True, exist_ok=True)
    sources = sources_of(sdk, bool(libraries))
    flags = [f"-I{SOURCE}", f"-I{sdk / 'include'}", "-std=c++20", "-O2"]
    includes = [f"-I{folder}" for folder in [pathlib.Path(nvcc).resolve().parents[1] / "include", *(folder.parent / "include" for folder in libraries)]]
    oldest = ask_nvidia_smi("compute_cap")[0].replace(".", "")

    def command(source):
        into = ["-c", source, "-o", objects / object_of(source)]
        if source.suffix == ".cu":
            contraction = f"--fmad={'true' if source.stem in CONTRACTED else 'false'}"
            return [nvcc, f"-arch=sm_{oldest}", "--expt-relaxed-constexpr", "-Xcompiler=-fPIC,-fvisibility=hidden", contraction, *flags, *into]
        return ["g++", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math", f"-DPLEXAURA_CUDA_OLDEST={oldest}", *flags,
                *includes, *into]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        done = list(pool.map(lambda source: stage.run(f"compile {object_of(source)}", command(source), at_most=MOST_SECONDS), sources))
    failed = [f"{source.name}: {one.last_line()}" for source, one in zip(sources, done) if one.status != 0 or one.timed_out]
    if failed:
        return f"{len(failed)} of {len(sources)} sources do not compile, {failed[0]}"
    return link(stage, carried, nvcc, [objects / object_of(source) for source in sources], libraries)


def object_of(source):
    return f"{source.parent.name}-{source.stem}.o"


def sources_of(sdk, with_libraries):
    vendor = ["nvidia_libraries", "cublaslt", "cudnn", "cudnn_descriptor"] if with_libraries else ["no_libraries"]
    folders = [CUDA, *(CUDA / name for name in ("engine", "kernels", "offers", "plugin", "regions", "runtime"))]
    return [*sorted((CUDA / "kernels").glob("*.cu")), *(source for folder in folders for source in sorted(folder.glob("*.cpp"))),
            *(CUDA / f"vendor/{name}.cpp" for name in [*vendor, "no_nccl"]), *sorted(sdk.glob("*.cpp"))]


def nvidia_libraries(folders):
    """Returns the folders of cuBLASLt and cuDNN if both are there with headers, and an empty list otherwise.
    """
    found = []
    for library, header in (("libcublasLt.so*", "cublasLt.h"), ("libcudnn.so*", "cudnn.h")):
        found += [folder for folder in folders if any(folder.glob(library)) and (folder.parent / "include" / header).exists()][:1]
    return list(dict.fromkeys(found)) if len(found) == 2 else []


def link(stage, carried, nvcc, objects, libraries):
    shared = [str(next(iter(sorted(folder.glob(name))))) for name in ("libcublasLt.so*", "libcudnn.so*") for folder in libraries
              if any(folder.glob(name))]
    toolkit = pathlib.Path(nvcc).resolve().parents[1]
    runtime = next((file for folder in ("lib64", "lib", "targets/x86_64-linux/lib") if (file := toolkit / folder / "libcudart_static.a").exists()), None)
    if runtime is None:
        return f"{toolkit} has no libcudart_static.a"
    plugin = carried / "build" / PLUGIN
    fresh = plugin.with_suffix(".fresh")
    done = stage.run("link", ["g++", "-shared", "-o", fresh, *objects, *sorted((carried / SDK).glob("*.a")), runtime, *shared,
                              carried / "build/core/libplexaura_core.so", *sorted((carried / "lib").glob("libfmt.so*")), "-Wl,--exclude-libs,ALL",
                              "-Wl,-z,defs", "-pthread", "-ldl", "-lrt", "-lgomp"], at_most=MOST_SECONDS)
    if done.status != 0 or done.timed_out:
        return f"it cannot be linked: {done.last_line()}"
    fresh.replace(plugin)
    return ""


def sdk_files(build):
    """Returns the files for compiling the plugin elsewhere: file -> its path in SDK."""
    listed = subprocess.run(["g++", "-E", "-x", "c++", "-"], input="#include <fmt/format.h>\n", text=True, capture_output=True).stdout
    header = re.search(r'"([^"]*/fmt/format\.h)"', listed)
    files = {file: f"include/fmt/{file.name}" for file in (pathlib.Path(header[1]).parent.glob("*.h") if header else [])}
    files |= {file: f"include/{file.relative_to(build / 'core/include')}" for file in (build / "core/include").rglob("*.h")}
    files |= {file: file.name for file in [*(build / "backends").glob("libplexaura_portable.a"), *(build / "backends/cuda").glob("*_kernel_code.cpp")]}
    return files
