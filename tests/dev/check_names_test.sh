#!/bin/bash
# Tests what dev/check_names reports and what it accepts: check_names_test.sh PATH/TO/check_names
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# write FILE CODE: writes a source with CODE in an anonymous namespace
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

# Templates and declarations count. Calls, comments and strings do not.
write training/data/two.cpp 'template <class T>
std::string shown(const T& value);'
expect_found "training/data/two.cpp:4 and training/one.cpp:4 each have a function 'shown' of their own; give one of them another name"
write training/data/two.cpp 'std::string other(int number) {
  // shown(number) {
  return shown(number) + "shown(int) {" + R"(shown(double) {)";
}
const auto value = shown(3);'
expect_passed

# Equal parameters are accepted, because the compiler reports them. Sources of another library do not matter.
write training/data/two.cpp 'std::string shown(const std::string& text) { return text; }'
expect_passed
write training/data/two.cpp ''
write models/two.cpp 'std::string shown(int number) { return {}; }'
expect_passed
# Anonymous namespaces in different namespaces are accepted, and so are members.
write training/data/two.cpp 'struct Shown { std::string shown(int number) const { return {}; } };'
expect_passed
sed -i 's/^namespace plexaura {/namespace plexaura::data {/' "$tree/training/data/two.cpp"
sed -i 's/struct Shown.*/int shown(int number) { return number; }/' "$tree/training/data/two.cpp"
expect_passed

# A header declares functions with versions for several processors with PLEXAURA_CLONED, every overload of them.
loops=backends/cpu/fast/loops
mkdir -p "$tree/backends/cpu/fast"
declare_in_header() { printf 'namespace plexaura {\n%s\n}  // namespace plexaura\n' "$1" > "$tree/$loops.h"; }
expect_undeclared() { expect_found "$loops.cpp:$1 defines '$2' with PLEXAURA_CLONES; declare it in loops.h with PLEXAURA_CLONED, or define it in an anonymous namespace"; }
cat > "$tree/$loops.cpp" << 'END'
namespace plexaura {
namespace {
PLEXAURA_CLONES void hidden(int number) {}
#define LOOP(T) \
  PLEXAURA_CLONES void hidden_##T(T number) {}
}  // namespace
PLEXAURA_CLONES std::vector<int> add(const int* x,
                                     int count) {}
#define LOOPS(T) \
  PLEXAURA_CLONES void scale(T* x) { add(x, 3); }
}  // namespace plexaura
END
expect_undeclared 7 add
declare_in_header 'PLEXAURA_CLONED std::vector<int> add(const int* x,
                                    int count);
void scale(float* x);'
expect_undeclared 10 scale
declare_in_header 'PLEXAURA_CLONED std::vector<int> add(const int* x, int count);
PLEXAURA_CLONED void scale(float* x);
void scale(double* x);'
expect_undeclared 10 scale
declare_in_header 'PLEXAURA_CLONED std::vector<int> add(const int* x, int count);
PLEXAURA_CLONED void scale(float* x);  // add(x)
template <class T> struct Scaler {
  void run(T* x) const { scale(x); }
};'
expect_passed
echo "what may be confused is found, and nothing else"
