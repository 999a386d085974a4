#!/bin/bash
# Breaks each rule of dev/check_arrows once: check_arrows_test.sh PATH/TO/check_arrows
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# expect FILE INCLUDE REASON: checks that the check fails with this reason if FILE includes INCLUDE
expect() {
  rm -rf "${tree:?}"/*
  for file in core/base/error.h core/tensor/shape.h core/vm/vm.h core/exchange/collective.h core/exchange/weights_immigration.h \
    training/loop/trainer.h backends/registry.h distributed/wire/tags.h distributed/communicator/communicator.h core/params/parameter_store.h \
    distributed/summing/overlapped.h models/config/config.h app/setup.h "$1"; do
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
expect core/vm/vm.h '"training/loop/trainer.h"' 'core/vm does not stand on training/loop'
expect core/vm/vm.h '<mpi.h>' 'nothing else'
expect core/new/new.h '"core/tensor/shape.h"' 'has no place yet'
expect backends/registry.h '"training/loop/trainer.h"' 'backends does not stand on training/loop'
expect training/loop/trainer.h '"backends/registry.h"' 'training/loop does not stand on backends'
expect distributed/wire/tags.h '"distributed/communicator/communicator.h"' 'distributed/wire does not stand on distributed/communicator'
expect distributed/averaging/mean_change.h '"distributed/summing/overlapped.h"' 'distributed/averaging does not stand on distributed/summing'
expect distributed/exchange/new.h '"core/params/parameter_store.h"' 'distributed needs of the engine only'
expect models/config/config.h '<mpi.h>' 'only distributed/mpi/ knows this library'
expect models/config/config.h '"config.h"' 'paths begin at the root'
expect models/config/config.h '"app/setup.h"' 'models/config does not stand on app'
rm -rf "${tree:?}"/*
mkdir -p "$tree/core/base" "$tree/dev" "$tree/tools"
echo '#pragma once' > "$tree/core/base/error.h"
sed 's|"core/base": \[\]|"core/base": ["core/step"]|' "$check" > "$tree/dev/check_arrows"
cp "$(dirname "$check")/../tools/tool.py" "$tree/tools/"
! python3 "$tree/dev/check_arrows" "$tree" > "$tree/output" || { echo "a circle of folders is not found"; exit 1; }
grep -qF "core/base stands on itself" "$tree/output" || { echo "a circle of folders is not named: $(cat "$tree/output")"; exit 1; }
echo "every rule finds what it is for"
