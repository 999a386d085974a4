#!/bin/bash
# Checks that a run which is stopped by a signal to one rank, and then resumed, ends with the same files as a
# run that was never stopped.
# stop_and_resume.sh PROGRAM STRATEGY SIGNAL
set -eu
program=$1 strategy=$2 signal=$3
mpirun=$(dirname "$0")/../../../support/mpirun.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run() { # OUTPUT STATUS MORE...: trains on 3 ranks
  "$mpirun" -n 3 --status "$2" -- "$program" run --model cnn --strategy "$strategy" --output "$folder/$1" "${@:3}"
}

run whole 0
# The signal arrives after step 20. Step 21 carries it to all ranks, which end after that step.
run stopped $((128 + signal)) --raise "$signal"
run stopped 0 --resume checkpoint-000021
for file in weights.safetensors state.safetensors; do
  cmp "$folder"/{whole,stopped}/checkpoint-000050/$file
done
