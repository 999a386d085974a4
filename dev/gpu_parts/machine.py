"""Describes the machine: its GPU as nvidia-smi reports it, the folders of NVIDIA's libraries, and a Python
that has PyTorch."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import threading


class UserError(Exception):
    """An error that the user can fix, described in one sentence."""


def first_gpu():
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"


def ask_nvidia_smi(fields, *more):
    """Returns one line of values for the GPU in use."""
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits", "-i", first_gpu(), *more]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        done = None
    if done is None or done.returncode != 0 or not done.stdout.strip():
        raise UserError("nvidia-smi finds no GPU on this machine; tools/test --preset cuda is what can be tested without one")
    return [value.strip() for value in done.stdout.splitlines()[0].split(",")]


class Machine:
    def __init__(self, python):
        self.gpu, self.driver, memory = ask_nvidia_smi("name,driver_version,memory.total")
        self.memory_mb = float(memory)
        self.python = python
        self.wheels = wheel_folders(python)

    def described(self):
        """Returns the name of this GPU for --device, or None if there is no description of it."""
        return next((name for name in ("a100", "h100", "h200", "b200") if re.search(rf"\b{name}\b", self.gpu, re.I)), None)

    def library_folders(self):
        """Returns the folders of cuBLAS, cuDNN and NVRTC if the loader does not find these by itself."""
        roots = [pathlib.Path(os.environ.get("CUDA_PATH", "/usr/local/cuda"))]
        folders = [folder for root in roots for folder in (root / "lib64", root / "lib") if folder.is_dir()]
        return list(dict.fromkeys(folder.resolve() for folder in [*self.wheels, *folders]))

    def toolkit_wheel(self):
        """Returns the folder of wheels that has cuBLAS's headers, which a build needs, or None."""
        return next((folder.parent for folder in self.wheels if (folder.parent / "include/cublasLt.h").exists()), None)

    def environment(self):
        folders = [*map(str, self.library_folders()), os.environ.get("LD_LIBRARY_PATH", "")]
        return dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, folders)))


def wheel_folders(python):
    """Returns the library folders of NVIDIA's wheels if this Python has them. PyTorch installs them."""
    ask = "import importlib.util as u; s = u.find_spec('nvidia'); print('\\n'.join(s.submodule_search_locations) if s else '')"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    roots = [pathlib.Path(line) for line in done.stdout.splitlines() if line.strip()]
    # cuDNN has its own folder beside that of the toolkit.
    return [folder for root in roots for folder in sorted(root.glob("*/lib")) if any(folder.glob("*.so*"))]


def modules_missing(python, *names):
    """Returns the modules that this Python cannot import."""
    ask = "import importlib.util as u, sys; print(' '.join(n for n in sys.argv[1:] if u.find_spec(n) is None))"
    done = subprocess.run([python, "-c", ask, *names], capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else list(names)


def of_toolkit(name):
    """Returns the path of a program of the CUDA toolkit, or None if there is none."""
    beside = pathlib.Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "bin" / name
    return shutil.which(name) or (str(beside) if beside.exists() else None)


def compiler():
    return of_toolkit("nvcc")


def sanitizer():
    return of_toolkit("compute-sanitizer")


class MemoryWatch(contextlib.AbstractContextManager):
    """Measures the peak memory of the GPU during the context, in MiB above the use before it. Asks the driver
    once a second, so that it does not slow down what is timed."""

    def __enter__(self):
        self._before = float(ask_nvidia_smi("memory.used")[0])
        self._most = self._before
        command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", first_gpu(), "-lms", "1000"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def _read(self):
        for line in self._process.stdout:
            if line.strip().isdigit():
                self._most = max(self._most, float(line))

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def most(self):
        return self._most - self._before
