#!/bin/bash
# tools_test.sh PREFIX: checks that the tools of an installed package work in another folder, without the
# sources.
set -euo pipefail
share=$1/share/plexaura
command -v mpirun > /dev/null || { echo "skipped: there is no mpirun"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() { echo "$1"; cat said; exit 1; }
ranks=("$share/tools/run" -n 2)
[[ $("$1/bin/mlp" --version) != *"no MPI"* ]] || ranks=()
"${ranks[@]}" "$1/bin/mlp" "$share/models/iris.yaml" --set "data.path=$share/models/iris.csv" --set output.dir=out \
  --set training.epochs=2 --log log.jsonl > said 2>&1 || fail "mlp does not train"
"$share/tools/why" out > said 2>&1 || fail "tools/why does not explain the run"
"$share/tools/graph" "$share/models/iris.yaml" --set "data.path=$share/models/iris.csv" > said 2>&1 || fail "tools/graph does not print the graph"
"$share/tools/weights" list out > said 2>&1 || fail "tools/weights does not list the weights of the run"
"$share/tools/onnx" export "$share/models/iris.yaml" out.onnx --set "data.path=$share/models/iris.csv" --set output.dir=out > said 2>&1 && \
  "$share/tools/onnx" run out.onnx > said 2>&1 || fail "tools/onnx does not export and run the model"
"$share/tools/runs" list log.jsonl > said 2>&1 || fail "tools/runs does not list the run"
"$share/tools/runs" sweep --out swept --seeds 2 "$1/bin/mlp" "$share/models/iris.yaml" --set "data.path=$share/models/iris.csv" \
  --set training.epochs=1 > said 2>&1 || fail "tools/runs does not sweep"
"$share/tools/pack" --help > said 2>&1 || fail "tools/pack does not start"
"$share/tools/scaling" --help > said 2>&1 || fail "tools/scaling does not start"
(. "$share/tools/mpi_environment" && env) > said
grep -q "^OMPI_MCA_rmaps_base_oversubscribe=" said || fail "tools/mpi_environment sets nothing"
[ -x "$share/tools/run" ] && [ -e "$share/tools/deploy/srun.sbatch" ] && [ ! -e "$share/tools/quickstart" ] || fail "other tools are installed"
