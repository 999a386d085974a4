#include "training/ranks/store_hash.h"

#include <doctest/doctest.h>
#include <functional>

#include "tests/training/tiny_store.h"

namespace plexaura::testing::store_hash_test {

namespace {

// Returns a store with two weights, two buffers and a frozen weight, and two arenas of state.
ParameterStore several() {
  const TensorType type{DType::float32, {2, 3}};
  ParameterStore store({{"first", type, ParameterRole::trainable, Initialiser::ones()},
                        {"second", type, ParameterRole::trainable, Initialiser::ones()},
                        {"mean", type, ParameterRole::buffer, Initialiser::ones()},
                        {"variance", type, ParameterRole::buffer, Initialiser::ones()},
                        {"still", type, ParameterRole::frozen, Initialiser::ones()}});
  Placement placement;
  for (const ParameterSpec& spec : store.specs())
    placement.append(spec.name, spec.type, spec.role, Layout::row_major(2));
  store.place(placement, test_backend());
  store.require_states(2);
  return store;
}

// Checks that the hash changes if any element of the tensor changes, and is the same again with the old element.
void check_each_element(const Tensor& was, const std::function<void(const Tensor&)>& write,
                        const std::function<std::uint64_t()>& hash) {
  const std::uint64_t before = hash();
  for (std::size_t i = 0; i < was.as<float>().size(); ++i) {
    CAPTURE(i);
    Tensor changed = was;
    changed.as<float>()[i] += 1;
    write(changed);
    CHECK(hash() != before);
    write(was);
    CHECK(hash() == before);
  }
}

}  // namespace

TEST_CASE("the hash of the weights depends on each element of each parameter and buffer") {
  ParameterStore store = several();
  for (const ParameterSpec& spec : store.specs()) {
    CAPTURE(spec.name);
    check_each_element(
        store.read(spec.name), [&](const Tensor& value) { store.write(spec.name, value); },
        [&] { return weights_hash(store); });
  }
}

TEST_CASE("the hash of the states depends on each element of each state") {
  ParameterStore store = several();
  for (const std::int64_t state : {0, 1})
    for (const char* name : {"first", "second"}) {
      CAPTURE(state);
      CAPTURE(name);
      check_each_element(
          store.read_state(state, name), [&](const Tensor& value) { store.write_state(state, name, value); },
          [&] { return states_hash(store); });
    }
}

}  // namespace plexaura::testing::store_hash_test
