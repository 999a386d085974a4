#!/bin/bash
# Each rule of dev/check_ops, broken once: check_ops_test.sh PATH/TO/check_ops
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{core/ops,docs/reference,plexaura}

write_sound_tree() {
  printf 'PLEXAURA_BINARY(add, Add, numbers, 1)\nPLEXAURA_OP(slice)\nPLEXAURA_OP(slice_grad)\n' > "$tree/core/ops/ops.def"
  echo 'Node operator+(Operand a, Operand b);' > "$tree/core/ops/binary.h"
  echo 'Node slice(Operand x, SliceOptions options);' > "$tree/core/ops/slice.h"
  printf '#include "core/ops/binary.h"\n#include "core/ops/slice.h"\n' > "$tree/plexaura/core.h"
  # shellcheck disable=SC2016
  printf '# Ops\n\n| header | ops |\n|---|---|\n| `binary.h`, `slice.h` | `+`; `slice` |\n\nText.\n' > "$tree/docs/reference/ops.md"
}
# expect REASON COMMAND...: after the command in the sound tree the check fails with that reason
expect() {
  local reason=$1 said
  shift
  write_sound_tree
  (cd "$tree" && "$@")
  if said=$("$check" "$tree"); then echo "not found: $reason"; exit 1; fi
  grep -qF "$reason" <<< "$said" || { echo "expected '$reason', but got: $said"; exit 1; }
}

write_sound_tree
"$check" "$tree"
expect "lacks 'cumsum'" sed -i '1i PLEXAURA_OP(cumsum)' core/ops/ops.def
expect "lacks 'add'" sed -i 's/`+`; //' docs/reference/ops.md
expect "lacks slice.h" sed -i 's/, `slice.h`//' docs/reference/ops.md
expect "does not include core/ops/slice.h" sed -i /slice/d plexaura/core.h
expect "no header of its row declares 'slice'" sed -i s/slice/cut/ core/ops/slice.h
echo "each rule finds what breaks it"
