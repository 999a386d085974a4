#!/bin/bash
# Runs a program on several ranks of this machine, and checks how it ends.
#   mpirun.sh -n RANKS [--status N|failure] [--says REGEX]... [--within SECONDS] [--own-pids] [--mpirun OPTIONS] -- PROGRAM ARGUMENTS...
# --status   the exit status that mpirun must return (default 0); "failure": any but 0 and the time limit's
# --says     a line that exactly one rank must print
# --within   a hard limit (default 60), in seconds of an idle machine
# --own-pids each rank in a process id namespace of its own, as in containers; skipped (77) where that is not allowed
# --mpirun   more options for mpirun, in one word
# The environment variable PLEXAURA_MPIRUN names another mpirun.
set -u
ranks=1 status=0 within=60 own_pids="" says=() options=()
while [ "$1" != -- ]; do
  case "$1" in
    -n) ranks=$2; shift 2 ;;
    --status) status=$2; shift 2 ;;
    --says) says+=("$2"); shift 2 ;;
    --within) within=$2; shift 2 ;;
    --own-pids) own_pids=1; shift ;;
    --mpirun) read -ra more <<< "$2"; options+=("${more[@]}"); shift 2 ;;
    *) echo "mpirun.sh: unknown option $1"; exit 2 ;;
  esac
done
shift

if [ -n "$own_pids" ]; then
  if ! unshare --pid --fork true 2>/dev/null; then
    echo "skipped: a process id namespace needs root"
    exit 77
  fi
  set -- unshare --pid --fork "$@"
fi

# Most of these runs fail, and then have no step to finish.
export OMPI_MCA_odls_base_sigkill_timeout=${OMPI_MCA_odls_base_sigkill_timeout:-2}
. "$(dirname "$0")/../../tools/mpi_environment"
export OMP_NUM_THREADS=1
# Whole stacks are needed to separate Open MPI's own leaks from ours, because Open MPI has already closed the
# libraries that allocated.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}fast_unwind_on_malloc=0"

# Scales the limit by the number of runnable threads for each core.
read -r load _ _ threads _ < /proc/loadavg
threads=${threads%/*} load=${load%.*}
within=$((within * (1 + (threads > load ? threads : load) / $(nproc))))

command=("${PLEXAURA_MPIRUN:-mpirun}" "${options[@]}" -n "$ranks" "$@")
start=$SECONDS
output=$(timeout --kill-after=5 "$within" "${command[@]}" 2>&1)
got=$?
echo "$output"

fail() { echo "mpirun.sh: $1"; exit 1; }
[ $((SECONDS - start)) -lt "$within" ] || fail "did not end within $within s"
if [ "$status" = failure ]; then
  [ $got -ne 0 ] || fail "returned 0, but a failure was expected"
else
  [ "$got" -eq "$status" ] || fail "returned $got instead of $status"
fi
for regex in "${says[@]}"; do
  lines=$(grep -cE -- "$regex" <<< "$output")
  [ "$lines" -eq 1 ] || fail "$lines lines instead of one match: $regex"
done
exit 0
