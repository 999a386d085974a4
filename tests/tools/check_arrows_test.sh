#!/bin/bash
# Each rule of tools/check_arrows, broken once: check_arrows_test.sh PATH/TO/check_arrows
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# expect FILE INCLUDE REASON: in a tree where FILE includes INCLUDE the check fails with that reason
expect() {
  rm -rf "${tree:?}"/*
  for file in core/base/error.h core/tensor/shape.h core/vm/vm.h core/exchange/collective.h core/exchange/weights_immigration.h \
    training/loop/trainer.h backends/registry.h distributed/wire/tags.h models/config/config.h "$1"; do
    mkdir -p "$tree/$(dirname "$file")"
    [ -e "$tree/$file" ] || echo '#pragma once' > "$tree/$file"
  done
  echo "#include $2" >> "$tree/$1"
  local output
  if output=$("$check" "$tree"); then
    echo "not found: $1 includes $2"
    exit 1
  fi
  grep -qF "$3" <<< "$output" || { echo "for '$2' in $1, expected '$3' but got: $output"; exit 1; }
}

expect core/tensor/shape.h '"core/vm/vm.h"' 'core/tensor does not stand on core/vm'
expect core/base/error.h '"core/tensor/shape.h"' 'core/base does not stand on core/tensor'
expect core/vm/vm.h '"training/loop/trainer.h"' 'core includes nothing outside itself'
expect core/vm/vm.h '<mpi.h>' 'nothing else'
expect core/new/new.h '"core/tensor/shape.h"' 'has no place yet'
expect backends/registry.h '"training/loop/trainer.h"' 'backends does not stand on training'
expect training/loop/trainer.h '"backends/registry.h"' 'training does not stand on backends'
expect distributed/wire/tags.h '"core/vm/vm.h"' 'distributed needs of the engine only'
expect models/config/config.h '<mpi.h>' 'only distributed/mpi/ knows this library'
expect models/config/config.h '"config.h"' 'paths begin at the root'
echo "every rule finds what it is for"
