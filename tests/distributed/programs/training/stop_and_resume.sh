#!/bin/bash
# A run that a signal to one rank stops and that is resumed ends with the very files of one that was never stopped.
#   stop_and_resume.sh PROGRAM STRATEGY SIGNAL
set -eu
program=$1 strategy=$2 signal=$3
mpirun=$(dirname "$0")/../../../support/mpirun.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run() { # OUTPUT STATUS MORE...: trains on 3 ranks
  "$mpirun" -n 3 --status "$2" -- "$program" run --model cnn --strategy "$strategy" --output "$folder/$1" "${@:3}"
}

run whole 0
# The signal comes after step 20; step 21 carries the word, and all ranks leave behind it.
run stopped $((128 + signal)) --raise "$signal"
run stopped 0 --resume checkpoint-000021
for file in weights.safetensors state.safetensors; do
  cmp "$folder"/{whole,stopped}/checkpoint-000050/$file
done
