#include "training/checkpoints/checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <limits>

#include "core/device/forwarding_backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/tiny_store.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/files/safetensors.h"

namespace plexaura::testing::checkpoint_test {

namespace {

// Counts the copies between host and device, and acts like a device with its own memory.
class CountingCopies final : public ForwardingBackend {
 public:
  explicit CountingCopies(Backend& inner) : ForwardingBackend(inner), info_(inner.info()) {
    info_.host_memory = false;
  }
  const BackendInfo& info() const override { return info_; }
  void copy(Stream stream, Address dst, const std::byte* src, std::size_t count) override {
    bytes += count;
    ForwardingBackend::copy(stream, dst, src, count);
  }

  std::size_t bytes = 0;

 private:
  BackendInfo info_;
};

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("what is saved is read again, bit for bit") {
  const TemporaryFolder folder;
  TinyStore saved(1, DType::float32, 2);
  saved.store.write_state(1, "fc.weight", TinyStore::counting({DType::float32, {3, 17}}, 100));
  save_checkpoint(
      folder / "run", saved.store,
      {12, 3, 4, 99, 0.1, 7, ~std::uint64_t{5}, 100, 8, "adam", {}, false, "00ff", "two\nlines\n"});
  TinyStore loaded(50, DType::float32, 2);
  const auto state = load_checkpoint(folder / "run", loaded.store, "adam");
  REQUIRE(state);
  CHECK(loaded.store.updates() == 12);
  CHECK(loaded.store.read("fc.weight").to_doubles() == saved.store.read("fc.weight").to_doubles());
  CHECK(loaded.store.read("bn.mean").to_doubles() == saved.store.read("bn.mean").to_doubles());
  for (const std::int64_t index : {0, 1})
    CHECK(loaded.store.read_state(index, "fc.weight") == saved.store.read_state(index, "fc.weight"));
  CHECK(state->step == 12);
  CHECK(state->epoch == 3);
  CHECK(state->step_in_epoch == 4);
  CHECK(state->seed == 99);
  CHECK(state->epoch_loss == 0.1);
  CHECK(state->epoch_samples == 7);
  CHECK(state->data_origin == ~std::uint64_t{5});
  CHECK(state->samples == 100);
  CHECK(state->batch_size == 8);
  CHECK(state->optimizer == "adam");
  CHECK(state->shuffle == false);
  CHECK(state->kernels == "00ff");
  CHECK(state->kernel_times == "two\nlines\n");
}

TEST_CASE("the times of kernels can be had before anything else of a checkpoint") {
  const TemporaryFolder folder;
  CHECK(kernel_times_of_newest(folder / "none").empty());
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 1, .kernel_times = "old"}, 2);
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 2, .kernel_times = "new"}, 2);
  CHECK(kernel_times_of_newest(folder.path()) == "new");
  write_text(folder / "checkpoint-000002/state.safetensors", "nonsense");
  CHECK(kernel_times_of_newest(folder.path()).empty());
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 3});
  CHECK(kernel_times_of_newest(folder.path()).empty());
}

TEST_CASE("so can the compression that was chosen, which is saved and read again") {
  const TemporaryFolder folder;
  CHECK(compression_of_newest(folder / "none").empty());
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 1});
  CHECK(compression_of_newest(folder.path()).empty());
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 2, .compression = "top-k"});
  CHECK(compression_of_newest(folder.path()) == "top-k");
  TinyStore loaded(50);
  const auto state = load_checkpoint(folder.path(), loaded.store);
  REQUIRE(state);
  CHECK(state->compression == "top-k");
}

TEST_CASE("a checkpoint of another optimizer or precision is refused, though its tensors would fit") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), TinyStore(1, DType::float32, 0).store, {.step = 1, .optimizer = "sgd"});
  const std::string file = (folder / "checkpoint-000001/state.safetensors").string();
  const std::string advice = "; resume with the same, or start from its weights with --weights";
  TinyStore same(0, DType::float32, 0);
  CHECK(user_error([&] { load_checkpoint(folder.path(), same.store, "adam"); }) ==
        file + " was made with training.optimizer.name sgd and now it is adam" + advice);
  TinyStore wide(0, DType::float64, 0);
  CHECK(user_error([&] { load_checkpoint(folder.path(), wide.store, "sgd"); }) ==
        file + " was made with training.precision float32 and now it is float64" + advice);
  CHECK(load_checkpoint(folder.path(), same.store, "sgd"));
  SafeTensors older = read_safetensors(file);
  older.metadata.clear();
  write_safetensors(file, older);
  CHECK(user_error([&] {
          load_checkpoint(folder.path(), same.store, "sgd");
        }).starts_with(file + " does not say its precision"));
}

TEST_CASE("a state of a dtype of its own is saved and read again, and refused by a store of another") {
  const TemporaryFolder folder;
  const TinyStore saved(1, DType::float32, 1, DType::float64);
  save_checkpoint(folder.path(), saved.store, {.step = 1, .optimizer = "sgd"});
  TinyStore same(0, DType::float32, 1, DType::float64);
  REQUIRE(load_checkpoint(folder.path(), same.store, "sgd"));
  CHECK(same.store.read_state(0, "fc.weight") == saved.store.read_state(0, "fc.weight"));
  TinyStore narrow(0);
  const std::string text = user_error([&] { load_checkpoint(folder.path(), narrow.store, "sgd"); });
  CAPTURE(text);
  CHECK(text.find(
            "'state0.fc.weight' is float64[3,17] and the optimizer's state is now float32[3,17]; resume") !=
        std::string::npos);
}

TEST_CASE("a checkpoint of other settings is refused with the key, what it was and what it is") {
  const TemporaryFolder folder;
  const std::map<std::string, std::string> settings{{"model.activation", "relu"}, {"model.name", "mlp"}};
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 1, .settings = settings});
  const std::string file = (folder / "checkpoint-000001/weights.safetensors").string();
  const auto refusal = [&](const std::map<std::string, std::string>& now) {
    TinyStore model(0);
    return user_error([&] { load_checkpoint(folder.path(), model.store, "", now); });
  };
  const std::string advice = "; resume with the same, or start from its weights with --weights";
  CHECK(refusal(settings).empty());
  CHECK(refusal({{"model.activation", "tanh"}, {"model.name", "mlp"}}) ==
        file + " was made with model.activation relu and now it is tanh" + advice);
  CHECK(refusal({{"model.name", "mlp"}}) ==
        file + " was made with model.activation relu and now it is not given" + advice);
  std::map<std::string, std::string> more = settings;
  more["model.loss"] = "hinge";
  CHECK(refusal(more) == file + " was made with model.loss not given and now it is hinge" + advice);
}

TEST_CASE("weights and a state that two runs have written are refused together") {
  const TemporaryFolder folder;
  save_checkpoint(folder / "one", TinyStore(1).store, {.step = 1});
  save_checkpoint(folder / "two", TinyStore(2).store, {.step = 1});
  fs::copy_file(folder / "two/checkpoint-000001/state.safetensors",
                folder / "one/checkpoint-000001/state.safetensors", fs::copy_options::overwrite_existing);
  TinyStore model(0);
  CHECK(user_error([&] { load_checkpoint(folder / "one", model.store); }) ==
        (folder / "one/checkpoint-000001/weights.safetensors").string() +
            " and state.safetensors were not written together; take both from one checkpoint, or start from "
            "the "
            "weights alone with --weights");
  CHECK(model.weight() == 0);
}

TEST_CASE("a checkpoint of an older version, which names neither settings nor weights") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 1, .settings = {{"model.name", "mlp"}}});
  const fs::path file = folder / "checkpoint-000001/state.safetensors";
  SafeTensors older = read_safetensors(file);
  older.metadata = {{"optimizer", ""}, {"precision", "float32"}};
  write_safetensors(file, older);
  save_weights(folder / "checkpoint-000001/weights.safetensors", TinyStore(1).store);
  TinyStore model(0);
  // The checkpoint is refused if there are settings to compare, and read if there are none.
  CHECK(user_error([&] {
          load_checkpoint(folder.path(), model.store, "", {{"model.name", "convnet"}});
        }) ==
        (folder / "checkpoint-000001/weights.safetensors").string() +
            " does not say its settings, as older versions did not; start from its weights with --weights");
  CHECK(model.weight() == 0);
  const auto state = load_checkpoint(folder.path(), model.store);
  REQUIRE(state);
  CHECK(state->kernels.empty());
  CHECK(state->kernel_times.empty());
  CHECK(!state->shuffle);
  CHECK(model.weight() == 1);
}

TEST_CASE("a state that no run comes to is refused") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 1, .samples = 8, .batch_size = 8});
  const fs::path file = folder / "checkpoint-000001/state.safetensors";
  const SafeTensors good = read_safetensors(file);
  const auto refusal = [&](const std::string& name, const Tensor& value) {
    SafeTensors bad = good;
    std::ranges::find(bad.tensors, name, [](const auto& entry) { return entry.first; })->second = value;
    write_safetensors(file, bad);
    TinyStore model(0);
    return user_error([&] { load_checkpoint(folder.path(), model.store); });
  };
  const std::string rest = "; the file is damaged: take another copy";
  for (const char* name : {"step", "epoch", "step_in_epoch", "samples", "batch_size"})
    CHECK(refusal(fmt::format("run.{}", name), Tensor::scalar(std::int64_t{-5})) ==
          fmt::format("{}: 'run.{}' is -5, which counts from 0{}", file.string(), name, rest));
  for (const char* name : {"epoch_loss", "epoch_samples"})
    CHECK(refusal(fmt::format("run.{}", name), Tensor::scalar(std::nan(""))) ==
          fmt::format("{}: 'run.{}' is nan, which no run can reach{}", file.string(), name, rest));
  const auto says = [&](const char* name, const Tensor& value, const std::string& what) {
    CHECK(refusal(name, value) == fmt::format("{}: {}{}", file.string(), what, rest));
  };
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  says("run.step", Tensor::scalar(largest), fmt::format("'run.step' is {}, which no run can reach", largest));
  says("run.epoch", Tensor::scalar(std::int64_t{2}), "1 steps are too few for 2 epochs and 0 steps");
  says("run.step_in_epoch", Tensor::scalar(std::int64_t{2}), "1 steps are too few for 0 epochs and 2 steps");
  says("run.epoch_samples", Tensor::scalar(-8.0), "'run.epoch_samples' is -8, which counts from 0");
  says("run.step_in_epoch", Tensor::scalar(std::int64_t{1}),
       "step 1 of an epoch does not come within 8 samples in batches of 8");
  Tensor bad = TinyStore::counting({DType::float32, Shape{3, 17}}, 1);
  bad.as<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  says("state0.fc.weight", bad, "NaN at element 2 of 'state0.fc.weight'");
}

TEST_CASE(
    "what a plateau has observed is saved and read again, and numbers that no run comes to are refused") {
  const TemporaryFolder folder;
  const PlateauState seen{.observations = 4, .best = 0.1, .bad = 1, .reductions = 2};
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 1, .plateau = seen});
  TinyStore model(0);
  CHECK(load_checkpoint(folder.path(), model.store)->plateau == seen);
  const fs::path file = folder / "checkpoint-000001/state.safetensors";
  SafeTensors bad = read_safetensors(file);
  const auto refusal = [&](const Tensor& value) {
    std::ranges::find(bad.tensors, "run.plateau", [](const auto& entry) { return entry.first; })->second =
        value;
    write_safetensors(file, bad);
    return user_error([&] { load_checkpoint(folder.path(), model.store); });
  };
  CHECK(refusal(Tensor::of<double>({5}, {4, 0.1, -1, 0, 2})) ==
        file.string() +
            ": 'run.plateau' has the number -1, which no run can reach; the file is damaged: take another "
            "copy");
  CHECK(refusal(Tensor::of<double>({2}, {4, 0.1})).find("has 2 numbers instead of 5") != std::string::npos);
  CHECK(refusal(Tensor::of<float>({1}, {4})).find("must be of float64") != std::string::npos);
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 2});
  CHECK(!load_checkpoint(folder.path(), model.store)->plateau);
}

TEST_CASE("a loss scale is saved and read again, and one that no run comes to is refused") {
  const TemporaryFolder folder;
  const auto scaled = [] {
    ParameterStore store({{"weight", {DType::float32, {3}}, ParameterRole::trainable, Initialiser::zeros()}});
    store.set_types(ArenaTypes::mixed(DType::float16));
    store.place({}, test_backend());
    return store;
  };
  ParameterStore saved = scaled();
  saved.write_loss_scale({32, 7, 2});
  save_checkpoint(folder.path(), saved, {.step = 1, .samples = 8, .batch_size = 8});
  ParameterStore store = scaled();
  REQUIRE(load_checkpoint(folder.path(), store));
  CHECK(store.read_loss_scale() == LossScale{32, 7, 2});
  const fs::path file = folder / "checkpoint-000001/state.safetensors";
  SafeTensors bad = read_safetensors(file);
  for (auto& [name, value] : bad.tensors)
    if (name == "loss_scale.scale") value = Tensor::scalar(0.F);
  write_safetensors(file, bad);
  CHECK(user_error([&] { load_checkpoint(folder.path(), store); }) ==
        fmt::format(
            "{}: 'loss_scale.scale' is 0, which no run can reach; the file is damaged: take another copy",
            file.string()));
}

TEST_CASE("an optimizer's state that is not finite does not take the place of a good one") {
  const TemporaryFolder folder;
  TinyStore model(1);
  save_checkpoint(folder.path(), model.store, {.step = 3});
  Tensor spoilt = model.store.read_state(0, "fc.weight");
  spoilt.as<float>()[5] = std::numeric_limits<float>::infinity();
  model.store.write_state(0, "fc.weight", spoilt);
  CHECK(user_error([&] {
          save_checkpoint(folder.path(), model.store, {.step = 4});
        }).starts_with("Inf at element 5 of the optimizer's state of 'fc.weight' after the last step"));
  CHECK(folder.names() == "checkpoint-000003 ");
}

TEST_CASE("there may be none") {
  const TemporaryFolder folder;
  TinyStore model(1);
  CHECK(!load_checkpoint(folder / "run", model.store));
  CHECK(!load_checkpoint(folder.path(), model.store));
  CHECK(!newest_checkpoint(folder.path()));
}

TEST_CASE("weights that are not numbers do not take the place of good ones") {
  const TemporaryFolder folder;
  TinyStore model(1);
  save_checkpoint(folder.path(), model.store, {.step = 3});
  Tensor spoilt = model.store.read("fc.weight");
  spoilt.as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  model.store.write("fc.weight", spoilt);
  const std::string text = user_error([&] { save_checkpoint(folder.path(), model.store, {.step = 4}); });
  CHECK(text.starts_with("NaN at element 5 of 'fc.weight' after the last step: training diverged"));
  CHECK(user_error([&] { check_weights(model.store); }) == text);
  CHECK(folder.names() == "checkpoint-000003 ");
}

TEST_CASE("the weights of a checkpoint carry the notes of the run beside its settings") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), TinyStore(1).store,
                  {.step = 1, .settings = {{"model.name", "mlp"}}, .notes = {{"table.class 0", "x"}}});
  const Metadata metadata = read_safetensors(folder / "checkpoint-000001/weights.safetensors").metadata;
  CHECK(metadata == Metadata{{"setting.model.name", "mlp"}, {"table.class 0", "x"}});
}

TEST_CASE("a checkpoint reads every weight and every state once") {
  const TemporaryFolder folder;
  CountingCopies backend(test_backend());
  const TinyStore model(1, DType::float32, 2, {}, backend);
  const auto bytes_in = [&](auto&& action) {
    backend.bytes = 0;
    action();
    return backend.bytes;
  };
  const std::size_t all = bytes_in([&] {
    for (const ParameterSpec& spec : model.store.specs()) model.store.read(spec.name);
    for (const std::int64_t index : {0, 1}) model.store.read_state(index, "fc.weight");
  });
  CHECK(all > 0);
  CHECK(bytes_in([&] { save_checkpoint(folder.path(), model.store, {.step = 1}); }) == all);
}

TEST_CASE("a checkpoint with a changed byte is refused") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 1});
  for (const char* name : {"weights.safetensors", "state.safetensors"}) {
    const fs::path file = folder / "checkpoint-000001" / name;
    const std::string whole = read_text(file);
    std::string changed = whole;
    changed.back() = static_cast<char>(changed.back() ^ 4);
    write_text(file, changed);
    TinyStore model(0);
    const std::string text = user_error([&] { load_checkpoint(folder.path(), model.store); });
    CHECK(text.find(name + std::string("': its tensors do not give the checksum")) != std::string::npos);
    write_text(file, whole);
  }
}

TEST_CASE("the state of another optimizer is refused") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), TinyStore(1).store, {.step = 1});
  const std::string file = (folder / "checkpoint-000001/state.safetensors").string();
  TinyStore fewer(0, DType::float32, 0);
  CHECK(user_error([&] { load_checkpoint(folder.path(), fewer.store); }) ==
        file + " holds the state of another optimizer; resume with the same training.optimizer");
  TinyStore more(0, DType::float32, 2);
  CHECK(user_error([&] { load_checkpoint(folder.path(), more.store); }) ==
        file +
            " has no tensor 'state1.fc.weight'; it belongs to another model or optimizer, or the parameter "
            "was frozen: "
            "freeze it as before (training.freeze), or start from the weights with --weights");
}

}  // namespace plexaura::testing::checkpoint_test
