#!/bin/bash
# Checks that files which run on the CPU need no library of CUDA, also in a build with the plugin for GPUs.
#   no_cuda_test.sh FILE...     programs and shared libraries
set -eu
if ! command -v ldd > /dev/null; then
  echo "no_cuda_test.sh: ldd is missing, so that nothing was checked"
  exit 77
fi
for file; do
  names=$(ldd "$file" | awk '{ print $1 }' | xargs -n 1 basename)
  [ -n "$names" ] || { echo "no_cuda_test.sh: ldd names no library of $file"; exit 1; }
  if found=$(grep -iE '^lib(cuda|cudart|cudnn|cublas|nccl|nvrtc|nvjitlink|nvidia)' <<< "$names"); then
    echo "no_cuda_test.sh: $file needs" $found
    exit 1
  fi
done
echo "no library of CUDA is needed by $# files"
