#!/bin/bash
# use_package.sh PREFIX FOLDER [OPTION...]: trains with the programs of the package that is installed in PREFIX, and builds and runs the
# project in this folder. The environment, or the options of CMake, name the package. Writes into FOLDER.
set -euo pipefail
prefix=$1 folder=$2
shift 2
[ "$(command -v mlp)" = "$prefix/bin/mlp" ] || { echo "the programs of $prefix are not in PATH"; exit 1; }
(
  cd "$prefix/share/plexaura"
  mlp models/iris.yaml --set output.dir="$folder/run"
  tools/run -n 2 mlp models/iris.yaml --set output.dir="$folder/ranks" --set training.epochs=2 | tee "$folder/said"
  grep -q ", 2 ranks$" "$folder/said"
)
cmake -S "$(dirname "$0")" -B "$folder/mine" -D CMAKE_BUILD_TYPE=Release "$@"
cmake --build "$folder/mine"
cd "$prefix/share/plexaura"
"$folder/mine/use_plexaura"
