#include "core/params/parameter_store.h"

#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/exchange/weights_immigration.h"
#include "tests/support/backend.h"
#include "tests/support/backend_fixture.h"
#include "tests/support/error_text.h"
#include "tests/support/read_tail.h"

namespace plexaura::testing::parameter_store_test {

namespace {

const TensorType filter{DType::float32, {5, 3, 3, 3}};
const TensorType vector{DType::float32, {5}};

std::vector<ParameterSpec> specs() {
  return {{"conv.weight", filter, ParameterRole::trainable, Initialiser::he_normal(), {"head.weight"}},
          {"conv.bias", vector, ParameterRole::trainable, Initialiser::zeros()},
          {"running", vector, ParameterRole::buffer, Initialiser::ones()},
          {"still", vector, ParameterRole::frozen, Initialiser::constant(3)}};
}

ParameterSpec plain(std::string name, TensorType type = vector, std::vector<std::string> aliases = {}) {
  return {std::move(name), std::move(type), ParameterRole::trainable, Initialiser::zeros(),
          std::move(aliases)};
}

Placement placement(bool swapped = false) {
  Placement placement;
  const Layout padded({0, 2, 3, 1}, {{1, 8}});
  if (swapped) placement.append("conv.bias", vector, ParameterRole::trainable, Layout::row_major(1));
  placement.append("conv.weight", filter, ParameterRole::trainable, swapped ? Layout::row_major(4) : padded);
  if (!swapped) placement.append("conv.bias", vector, ParameterRole::trainable, Layout::row_major(1));
  placement.append("running", vector, ParameterRole::buffer, Layout::row_major(1));
  return placement;
}

}  // namespace

TEST_CASE("what gave the initial values is not kept, and a second store does not start without them") {
  const auto file = std::make_shared<Tensor>(vector);
  const ParameterStore store(std::vector<ParameterSpec>{
      {"w", vector, ParameterRole::trainable, Initialiser::given([file] { return *file; })}});
  CHECK(file.use_count() == 1);
  CHECK(user_error([&] {
          ParameterStore(store.specs());
        }).starts_with("the parameter 'w' is described by a store"));
}

TEST_CASE("values are read and written by name or alias, placed or not") {
  ParameterStore store(specs());
  CHECK(store.trainable_elements() == 140);
  CHECK(store.read("still").to_doubles() == std::vector<double>(5, 3));
  const Tensor value = counting(filter);
  const std::uint64_t version = store.version();
  store.write("head.weight", value);
  CHECK(store.version() > version);
  CHECK(store.read("conv.weight") == value);
  CHECK(!store.placed());
  store.place(placement(), test_backend());
  CHECK(store.placed());
  CHECK(store.read("head.weight") == value);
  CHECK(store.read("still").to_doubles() == std::vector<double>(5, 3));
  // It is not in the list of trainables, so it is last and frozen.
  CHECK(store.placement().entries.back().name == "still");
  store.write("conv.weight", counting(filter, 7));
  CHECK(store.read("conv.weight") == counting(filter, 7));
}

TEST_CASE("placing anew keeps values and state by name, and counts") {
  ParameterStore store(specs());
  store.place(placement(), test_backend());
  store.require_states(2);
  store.write("conv.weight", counting(filter));
  store.write_state(1, "conv.weight", counting(filter, 5));
  store.write_state(0, "conv.bias", counting(vector, 9));
  const std::uint64_t times = store.placed_times();
  store.place(placement(true), test_backend());
  CHECK(store.placed_times() == times + 1);
  CHECK(store.placement().entries[0].name == "conv.bias");
  CHECK(store.states() == 2);
  CHECK(store.read("conv.weight") == counting(filter));
  CHECK(store.read_state(1, "conv.weight") == counting(filter, 5));
  CHECK(store.read_state(0, "conv.bias") == counting(vector, 9));
  CHECK(store.read_state(0, "conv.weight").to_doubles() == std::vector<double>(135, 0));
  CHECK(store.read_gradient("conv.weight").to_doubles() == std::vector<double>(135, 0));
  CHECK(plexaura::testing::read_tail(store, TailSlot::loss) == 0);
}

TEST_CASE("placing anew with other types casts the state") {
  ParameterStore store(specs());
  store.place(placement(), test_backend());
  store.require_states(1);
  store.write("conv.weight", counting(filter));
  store.write_state(0, "conv.bias", counting(vector, 9));
  store.set_types({DType::float32, DType::float32, DType::float64, DType::bfloat16});
  CHECK(store.read_state(0, "conv.bias").dtype() == DType::float32);  // the dtype before the store is placed
  Placement other;
  other.types = store.types();
  for (const Placement::Entry& entry : placement().entries)
    other.append(entry.name, entry.type, entry.role, entry.layout);
  store.place(other, test_backend());
  CHECK(store.read("conv.weight") == counting(filter));
  CHECK(store.read_shadow("conv.weight") == counting(filter).cast(DType::bfloat16));
  CHECK(store.read_state(0, "conv.bias") == counting(vector, 9).cast(DType::float64));
  store.write("conv.bias", counting(vector, 3));
  CHECK(store.read_shadow("conv.bias") == counting(vector, 3).cast(DType::bfloat16));
}

TEST_CASE("a store of float16 has a loss scale, which stays when it is placed anew") {
  ParameterStore store(specs());
  store.set_types(ArenaTypes::mixed(DType::bfloat16));
  store.place({}, test_backend());
  CHECK(user_error([&] { store.read_loss_scale(); }).find("has no loss scale") != std::string::npos);
  store.set_types(ArenaTypes::mixed(DType::float16));
  store.place({}, test_backend());
  CHECK(store.read_loss_scale() == LossScale{});
  const LossScale scale{32, 7, 2};
  store.write_loss_scale(scale);
  store.place({}, test_backend());
  CHECK(store.read_loss_scale() == scale);
}

TEST_CASE("a placement that mentions nothing is completed with the types of the store") {
  ParameterStore store({{"w", {DType::float32, {2}}, ParameterRole::frozen, Initialiser::ones()}});
  store.set_types(ArenaTypes::mixed(DType::bfloat16));
  const Placement complete = store.complete({});
  CHECK(complete.types == store.types());
  store.place(complete, test_backend());
  CHECK(store.read("w").to_doubles() == std::vector<double>{1, 1});
}

TEST_CASE("types of arenas that cannot be are refused in words") {
  ParameterStore store(specs());
  const auto check = [&](auto&& action, std::string_view words) {
    const std::string text = user_error(action);
    CAPTURE(text);
    CHECK(text.find(words) != std::string::npos);
  };
  check([&] { store.set_types(ArenaTypes::all(DType::float64)); }, "make the store with that type");
  check([&] { store.set_types({DType::float32, DType::int64, DType::float32}); }, "would hold int64; choose");
  store.set_types({DType::float32, DType::bfloat16, DType::float32});
  check([&] { store.place(placement(), test_backend()); }, "compile it with the types of the store");
  check([&] { store.shadow(); }, "not placed yet");
  store.place({}, test_backend());
  CHECK(store.placement().types.gradients == DType::bfloat16);
  check([&] { store.shadow(); }, "has no shadow");
  check([&] { store.read_shadow("conv.bias"); }, "has no shadow");
}

TEST_CASE("wrong names and types are refused in words") {
  ParameterStore store(specs());
  const auto check = [&](auto&& action, std::string_view words) {
    const std::string text = user_error(action);
    CAPTURE(text);
    CHECK(text.find(words) != std::string::npos);
  };
  check([&] { store.read("conv.wieght"); }, "did you mean 'conv.weight'");
  check([&] { store.write("conv.bias", Tensor(filter)); }, "'conv.bias'");
  check([&] { store.set_trainable("running", false); }, "'running' is a buffer");
  check([] { ParameterStore({plain("a"), plain("a")}); }, "two parameters are named 'a'");
  check([] { ParameterStore({plain("a"), plain("b", vector, {"a"})}); }, "two parameters are named 'a'");
  for (const char* name : {"", "a b", "a\nb", "größe", "a/b"})
    check([&] { ParameterStore({plain(name)}); }, "a parameter is named '" + std::string(name) + "'; use");
  check([] { ParameterStore({plain("a"), plain("b", vector, {"an alias"})}); }, "named 'an alias'; use");
  check([] { ParameterStore({plain("a"), plain("b", {DType::float64, {5}})}); }, "one dtype");
  check([] { ParameterStore({plain("a", {DType::int64, {5}})}); }, "float");
  check([&] { store.read_gradient("conv.bias"); }, "not placed yet");
  check([&] { store.require_states(1); }, "not placed yet");
  check([&] { store.read_state(0, "conv.bias"); }, "not placed yet");
  check([&] { store.write_state(0, "conv.bias", Tensor(vector)); }, "not placed yet");
  check([&] { store.values(); }, "make the VM, Optimizer or Trainer of it first");
  check([&] { store.state(0); }, "not placed yet");
  Placement wrong;
  wrong.append("conv.bias", {DType::float32, {6}}, ParameterRole::trainable, Layout::row_major(1));
  check([&] { store.place(wrong, test_backend()); }, "'conv.bias'");
  CHECK(!store.placed());
  Placement unknown;
  unknown.append("nobody", vector, ParameterRole::trainable, Layout::row_major(1));
  check([&] { store.place(unknown, test_backend()); }, "'nobody'");
  store.place(placement(), test_backend());
  store.require_states(1);
  check([&] { store.read_gradient("still"); }, "'still' is frozen");
  check([&] { store.read_state(0, "running"); }, "no optimizer state");
  check([&] { store.read_state(-1, "conv.bias"); }, "1 arenas of optimizer state, so there is no number -1");
  check([&] { store.read_state(1, "conv.bias"); }, "1 arenas of optimizer state, so there is no number 1");
  check([&] { store.write_state(0, "conv.bias", Tensor(filter)); }, "'conv.bias'");
}

TEST_CASE("freezing holds for the next compile") {
  ParameterStore store(specs());
  store.set_trainable("head.weight", false);
  CHECK(store.spec("conv.weight").role == ParameterRole::frozen);
  CHECK(store.trainable_elements() == 5);
  store.set_trainable("still", true);
  CHECK(store.trainable_elements() == 10);
}

TEST_CASE("the border lists entries with their bytes and buckets") {
  ParameterStore store(specs());
  store.place(placement(), test_backend());
  const WeightsImmigration border(store, 1);
  const auto entries = border.entries();
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].name == "conv.weight");
  CHECK(entries[0].value_bytes == 5 * 3 * 3 * 8 * 4 / 64 * 64 + 64 * (5 * 3 * 3 * 8 * 4 % 64 != 0));
  CHECK(entries[0].gradient_bytes == entries[0].value_bytes);
  CHECK(entries[0].bucket == 0);
  CHECK(entries[1].bucket == 1);
  CHECK(entries[2].role == ParameterRole::buffer);
  CHECK(entries[2].bucket == border.buckets().size() - 1);
  CHECK(entries[3].gradient_bytes == 0);
  CHECK(!entries[3].bucket.has_value());
  CHECK(border.step() == 0);
}

TEST_CASE("a store that was moved goes on for those that refer to it") {
  ParameterStore store(specs());
  const ParameterStore shared = store.share();
  ParameterStore moved = std::move(store);
  moved.place(placement(), test_backend());
  const Tensor threes = Tensor::of<float>({5}, {3, 3, 3, 3, 3});
  moved.write("conv.bias", threes);
  CHECK(shared.read("conv.bias") == threes);
  CHECK(shared.version() == moved.version());
  // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): that is what is tested
  CHECK(store.read("conv.bias") == threes);
  moved = ParameterStore(specs(), 1);
  CHECK(!moved.placed());
  CHECK(shared.read("conv.bias") == threes);
}

TEST_CASE("a store whose backend is gone says so") {
  ParameterStore store(specs());
  auto backend = open_backend("portable");
  store.place(placement(), *backend);
  backend.reset();
  CHECK(user_error([&] {
          store.read("conv.bias");
        }).starts_with("the backend was destroyed before what was made"));
  ParameterStore sharing(specs());
  std::shared_ptr<Backend> shared = open_backend("portable");
  sharing.place(placement(), *shared);
  shared.reset();
  CHECK(sharing.read("conv.bias") == Tensor(vector));
}

}  // namespace plexaura::testing::parameter_store_test
