#!/bin/bash
# What dev/check_names finds and what it lets pass: check_names_test.sh PATH/TO/check_names
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# write FILE CODE: in the anonymous namespace of a source
write() {
  mkdir -p "$tree/$(dirname "$1")"
  printf 'namespace plexaura {\nnamespace {\n\n%s\n\n}  // namespace\n}  // namespace plexaura\n' "$2" > "$tree/$1"
}
expect_passed() { "$check" "$tree" > "$tree/said" || { cat "$tree/said"; exit 1; }; }
expect_found() {
  if "$check" "$tree" > "$tree/said"; then echo "not found: $1"; exit 1; fi
  grep -qxF "$1" "$tree/said" || { echo "expected '$1', but got:"; cat "$tree/said"; exit 1; }
}

write training/one.cpp 'std::string shown(const std::string& text) { return text + call(1); }'
write training/data/two.cpp 'std::string shown(const Json& value) { return shown_json(value); }'
expect_found "training/data/two.cpp:4 and training/one.cpp:4 each have a function 'shown' of their own; give one of them another name"

# Templates and declarations count; what only calls, comments or quotes does not.
write training/data/two.cpp 'template <class T>
std::string shown(const T& value);'
expect_found "training/data/two.cpp:4 and training/one.cpp:4 each have a function 'shown' of their own; give one of them another name"
write training/data/two.cpp 'std::string other(int number) {
  // shown(number) {
  return shown(number) + "shown(int) {" + R"(shown(double) {)";
}
const auto value = shown(3);'
expect_passed

# The same parameters are an error of the compiler, and another library is another matter.
write training/data/two.cpp 'std::string shown(const std::string& text) { return text; }'
expect_passed
write training/data/two.cpp ''
write models/two.cpp 'std::string shown(int number) { return {}; }'
expect_passed
# So are the anonymous namespaces of two namespaces, and members.
write training/data/two.cpp 'struct Shown { std::string shown(int number) const { return {}; } };'
expect_passed
sed -i 's/^namespace plexaura {/namespace plexaura::data {/' "$tree/training/data/two.cpp"
sed -i 's/struct Shown.*/int shown(int number) { return number; }/' "$tree/training/data/two.cpp"
expect_passed
echo "what may be confused is found, and nothing else"
