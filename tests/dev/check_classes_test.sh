#!/bin/bash
# Keeps and exceeds each limit of dev/check_classes: check_classes_test.sh PATH/TO/check_classes
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/core"

# lines COUNT FORMAT: prints the format with each number from 1 to COUNT
lines() { for i in $(seq "$1"); do printf "  $2\n" "$i"; done; }
# check_class MESSAGE < BODY: checks a class; the check must fail with this message or, if it is empty, pass
check_class() {
  { echo "class ${name:-Some} {"; echo " public:"; cat; echo "};"; } > "$tree/core/some.h"
  local output status=0
  output=$("$check" "$tree") || status=$?
  if [ -z "$1" ]; then
    [ $status = 0 ] || { echo "refused: $output"; exit 1; }
  else
    [ $status = 1 ] && grep -qF "$1" <<< "$output" || { echo "expected '$1' but got: $output"; exit 1; }
  fi
}

lines 8 'virtual int f%d(const std::vector<int>& x) = 0;' | check_class ""
lines 9 'virtual int f%d(const std::vector<int>& x) = 0;' | check_class "has 9 functions that whoever implements it must write; at most 8"
lines 10 'virtual void f%d() {}' | check_class ""
lines 11 'virtual void f%d() {}' | check_class "has 11 virtual functions; at most 10"
lines 40 'int f%d() const { return member_; }' | check_class ""
lines 41 'int f%d() const { return member_; }' | check_class "has 41 functions; at most 40"
lines 16 'std::function<void(int)> m%d_ = {};  // f();' | check_class ""
lines 17 'std::function<void(int)> m%d_ = {};  // f();' | check_class "has 17 members; at most 16"
lines 17 'static constexpr int m%d = 1;' | check_class ""
name=Transport
lines 5 'virtual void f%d() = 0;' | check_class "Transport has 5 functions that whoever implements it must write, and is listed with 13: lower that"
echo "every limit finds what it is for"
