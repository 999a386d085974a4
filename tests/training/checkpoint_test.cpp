#include "training/checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <limits>
#include <set>
#include <sys/inotify.h>
#include <unistd.h>

#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/safetensors.h"

namespace plexaura::testing {

namespace {

namespace fs = std::filesystem;

// A matrix in a blocked layout, tied under a second name, and a buffer; with one state arena.
class Model {
 public:
  explicit Model(double first, DType dtype = DType::float32, std::int64_t states = 1)
      : store({{"fc.weight",
                {dtype, Shape{3, 17}},
                ParameterRole::trainable,
                Initialiser::zeros(),
                {"tied.weight"}},
               {"bn.mean", {dtype, Shape{2}}, ParameterRole::buffer, Initialiser::zeros()}}) {
    Placement placement;
    placement.dtype = dtype;
    placement.append("fc.weight", store.specs()[0].type, ParameterRole::trainable, Layout({0, 1}, {{1, 8}}));
    placement.append("bn.mean", store.specs()[1].type, ParameterRole::buffer, Layout::row_major(1));
    store.place(placement, test_backend());
    store.require_states(states);
    for (const ParameterSpec& spec : store.specs()) store.write(spec.name, counting(spec.type, first));
    for (std::int64_t i = 0; i < states; ++i)
      store.write_state(i, "fc.weight", counting(store.specs()[0].type, first + 0.5));
  }

  static Tensor counting(const TensorType& type, double first) {
    Tensor tensor(TensorType{DType::float64, type.shape});
    for (double& value : tensor.as<double>()) value = first++;
    return tensor.cast(type.dtype);
  }

  double weight() const { return store.read("fc.weight").to_doubles()[0]; }
  double state(std::int64_t index) const { return store.read_state(index, "fc.weight").to_doubles()[0]; }

  ParameterStore store;
};

std::string names(const fs::path& folder) {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.insert(entry.path().filename());
  std::string text;
  for (const std::string& name : found) text += name + ' ';
  return text;
}

// Notes what appears in a folder under a name, and what goes, in order.
class Watch {
 public:
  explicit Watch(const fs::path& folder) : descriptor_(::inotify_init1(IN_NONBLOCK)) {
    ::inotify_add_watch(descriptor_, folder.c_str(), IN_MOVED_TO | IN_DELETE);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() { ::close(descriptor_); }

  std::string seen() const {
    alignas(inotify_event) std::array<char, 4096> buffer{};
    const ssize_t bytes = ::read(descriptor_, buffer.data(), buffer.size());
    std::string text;
    for (ssize_t at = 0; at < bytes;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      text += std::string((event->mask & IN_DELETE) != 0 ? "-" : "+") + event->name + ' ';
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return text;
  }

 private:
  int descriptor_;
};

}  // namespace

TEST_CASE("what is saved is read again, bit for bit") {
  const TemporaryFolder folder;
  const Model saved(1);
  save_checkpoint(folder / "run", saved.store, {12, 3, 4, 99, 0.1, 7, ~std::uint64_t{5}, 100, 8, "adam"});
  Model loaded(50);
  const auto state = load_checkpoint(folder / "run", loaded.store, "adam");
  REQUIRE(state);
  CHECK(loaded.store.read("fc.weight").to_doubles() == saved.store.read("fc.weight").to_doubles());
  CHECK(loaded.store.read("bn.mean").to_doubles() == saved.store.read("bn.mean").to_doubles());
  CHECK(loaded.store.read_state(0, "fc.weight").to_doubles() ==
        saved.store.read_state(0, "fc.weight").to_doubles());
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
}

TEST_CASE("a checkpoint of another optimizer or precision is refused, though its tensors would fit") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), Model(1, DType::float32, 0).store, {.step = 1, .optimizer = "sgd"});
  const std::string file = (folder / "checkpoint-000001/state.safetensors").string();
  const std::string advice = "; resume with the same, or start from its weights with --weights";
  Model same(0, DType::float32, 0);
  CHECK(user_error([&] { load_checkpoint(folder.path(), same.store, "adam"); }) ==
        file + " was made with training.optimizer.name sgd and now it is adam" + advice);
  Model wide(0, DType::float64, 0);
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

TEST_CASE("a checkpoint of other settings is refused with the key, what it was and what it is") {
  const TemporaryFolder folder;
  const std::map<std::string, std::string> settings{{"model.activation", "relu"}, {"model.name", "mlp"}};
  save_checkpoint(folder.path(), Model(1).store, {.step = 1, .settings = settings});
  const std::string file = (folder / "checkpoint-000001/state.safetensors").string();
  const auto refusal = [&](const std::map<std::string, std::string>& now) {
    Model model(0);
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
  save_checkpoint(folder / "one", Model(1).store, {.step = 1});
  save_checkpoint(folder / "two", Model(2).store, {.step = 1});
  fs::copy_file(folder / "two/checkpoint-000001/state.safetensors",
                folder / "one/checkpoint-000001/state.safetensors", fs::copy_options::overwrite_existing);
  Model model(0);
  CHECK(user_error([&] { load_checkpoint(folder / "one", model.store); }) ==
        (folder / "one/checkpoint-000001/weights.safetensors").string() +
            " and state.safetensors were not written together; take both from one checkpoint, or start from "
            "the "
            "weights alone with --weights");
  CHECK(model.weight() == 0);
}

TEST_CASE("a checkpoint of an older version, which names neither settings nor weights, is read") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), Model(1).store, {.step = 1, .settings = {{"model.name", "mlp"}}});
  const fs::path file = folder / "checkpoint-000001/state.safetensors";
  SafeTensors older = read_safetensors(file);
  older.metadata = {{"optimizer", ""}, {"precision", "float32"}};
  write_safetensors(file, older);
  Model model(0);
  CHECK(load_checkpoint(folder.path(), model.store, "", {{"model.name", "convnet"}}));
  CHECK(model.weight() == 1);
}

TEST_CASE("a state that no run comes to is refused") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), Model(1).store, {.step = 1});
  const fs::path file = folder / "checkpoint-000001/state.safetensors";
  const SafeTensors good = read_safetensors(file);
  const auto refusal = [&](const std::string& name, const Tensor& value) {
    SafeTensors bad = good;
    std::ranges::find(bad.tensors, name, [](const auto& entry) { return entry.first; })->second = value;
    write_safetensors(file, bad);
    Model model(0);
    return user_error([&] { load_checkpoint(folder.path(), model.store); });
  };
  const std::string rest = "; the file is damaged: take another copy";
  for (const char* name : {"step", "epoch", "step_in_epoch", "samples", "batch_size"})
    CHECK(refusal(fmt::format("run.{}", name), Tensor::scalar(std::int64_t{-5})) ==
          fmt::format("{}: 'run.{}' is -5, which counts from 0{}", file.string(), name, rest));
  for (const char* name : {"epoch_loss", "epoch_samples"})
    CHECK(refusal(fmt::format("run.{}", name), Tensor::scalar(std::nan(""))) ==
          fmt::format("{}: 'run.{}' is nan, which no run comes to{}", file.string(), name, rest));
}

TEST_CASE("there may be none") {
  const TemporaryFolder folder;
  Model model(1);
  CHECK(!load_checkpoint(folder / "run", model.store));
  CHECK(!load_checkpoint(folder.path(), model.store));
  CHECK(!newest_checkpoint(folder.path()));
}

TEST_CASE("the newest is read and older ones are removed") {
  const TemporaryFolder folder;
  for (const std::int64_t step : {9, 10, 1000000})
    save_checkpoint(folder.path(), Model(static_cast<double>(step)).store, {.step = step}, 2);
  CHECK(names(folder.path()) == "checkpoint-000010 checkpoint-1000000 ");
  Model model(0);
  CHECK(load_checkpoint(folder.path(), model.store)->step == 1000000);
  CHECK(model.weight() == 1000000);
}

TEST_CASE("a run that began anew is not hidden by what an earlier one left") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), Model(1).store, {.step = 900});
  save_checkpoint(folder.path(), Model(2).store, {.step = 100});
  CHECK(names(folder.path()) == "checkpoint-000100 ");
}

TEST_CASE("the others go when the new one has its name: whenever a run is killed, one is there") {
  const TemporaryFolder folder;
  for (const std::int64_t step : {50, 900}) save_checkpoint(folder.path(), Model(1).store, {.step = step}, 2);
  const Watch watch(folder.path());
  save_checkpoint(folder.path(), Model(2).store, {.step = 100});
  CHECK(watch.seen() == "+checkpoint-000100 -checkpoint-000050 -checkpoint-000900 ");
}

TEST_CASE("a checkpoint of the same step is replaced, and leftovers of a killed writer go") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), Model(1).store, {.step = 5});
  fs::create_directory(folder / "checkpoint.unfinished");
  write_text(folder / "checkpoint.unfinished/weights.safetensors", "half of it");
  CHECK(newest_checkpoint(folder.path()) == folder / "checkpoint-000005");
  save_checkpoint(folder.path(), Model(2).store, {.step = 5});
  CHECK(names(folder.path()) == "checkpoint-000005 ");
  Model model(0);
  load_checkpoint(folder.path(), model.store);
  CHECK(model.weight() == 2);
}

TEST_CASE("other folders are let alone") {
  const TemporaryFolder folder;
  for (const char* name : {"checkpoint-", "checkpoint-12x", "checkpoints", "mine"})
    fs::create_directory(folder / name);
  save_checkpoint(folder.path(), Model(1).store, {.step = 5});
  CHECK(names(folder.path()) == "checkpoint- checkpoint-000005 checkpoint-12x checkpoints mine ");
}

TEST_CASE("where nothing can be written is said at once") {
  const TemporaryFolder folder;
  write_text(folder / "file", "");
  const std::string expected = "cannot create " + (folder / "file/run").string() +
                               ": Not a directory; name a folder that can be written in output.dir";
  CHECK(user_error([&] { prepare_checkpoints(folder / "file/run"); }) == expected);
  CHECK(user_error([&] { save_checkpoint(folder / "file/run", Model(1).store, {}); }) == expected);
}

TEST_CASE("weights that are not numbers do not take the place of good ones") {
  const TemporaryFolder folder;
  Model model(1);
  save_checkpoint(folder.path(), model.store, {.step = 3});
  Tensor spoilt = model.store.read("fc.weight");
  spoilt.as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  model.store.write("fc.weight", spoilt);
  const std::string text = user_error([&] { save_checkpoint(folder.path(), model.store, {.step = 4}); });
  CHECK(text.starts_with("NaN at element 5 of 'fc.weight' after the last step: training diverged"));
  CHECK(user_error([&] { check_weights(model.store); }) == text);
  CHECK(names(folder.path()) == "checkpoint-000003 ");
}

TEST_CASE("a checkpoint with a changed byte is refused") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), Model(1).store, {.step = 1});
  for (const char* name : {"weights.safetensors", "state.safetensors"}) {
    const fs::path file = folder / "checkpoint-000001" / name;
    const std::string whole = read_text(file);
    std::string changed = whole;
    changed.back() = static_cast<char>(changed.back() ^ 4);
    write_text(file, changed);
    Model model(0);
    const std::string text = user_error([&] { load_checkpoint(folder.path(), model.store); });
    CHECK(text.find(name + std::string("': its tensors do not give the checksum")) != std::string::npos);
    write_text(file, whole);
  }
}

TEST_CASE("the state of another optimizer is refused") {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), Model(1).store, {.step = 1});
  const std::string file = (folder / "checkpoint-000001/state.safetensors").string();
  Model fewer(0, DType::float32, 0);
  CHECK(user_error([&] { load_checkpoint(folder.path(), fewer.store); }) ==
        file + " holds the state of another optimizer; resume with the same training.optimizer");
  Model more(0, DType::float32, 2);
  CHECK(user_error([&] { load_checkpoint(folder.path(), more.store); }) ==
        file + " has no tensor 'state1.fc.weight'; it belongs to another model or optimizer");
}

TEST_CASE("weights load from files of other makers: names, aliases, counters, types") {
  const TemporaryFolder folder;
  const TensorType wide{DType::float64, Shape{3, 17}};
  Model model(0);
  write_safetensors(folder / "weights", {{{"tied.weight", Model::counting(wide, 7)},
                                          {"bn.mean", Model::counting({DType::float16, Shape{2}}, 3)},
                                          {"bn.num_batches_tracked", Tensor::scalar(std::int64_t{5})}},
                                         {{"format", "pt"}}});
  load_weights(folder / "weights", model.store);
  CHECK(model.weight() == 7);
  CHECK(model.store.read("bn.mean").to_doubles() == std::vector<double>{3, 4});
}

TEST_CASE("weights of another model are refused with the first name that does not fit") {
  const TemporaryFolder folder;
  const fs::path path = folder / "weights";
  Model model(0);
  const Tensor weight = Model::counting({DType::float32, Shape{3, 17}}, 1);
  const Tensor mean = Model::counting({DType::float32, Shape{2}}, 1);
  const auto refusal = [&](const SafeTensors& contents) {
    write_safetensors(path, contents);
    return user_error([&] { load_weights(path, model.store); }).substr(path.string().size());
  };
  CHECK(
      refusal({{{"fc.weigth", weight}}, {}}) ==
      ": the model has no parameter 'fc.weigth'; did you mean 'fc.weight'?; load weights of the same model");
  CHECK(refusal({{{"fc.weight", weight}}, {}}) ==
        " lacks 'bn.mean' and 0 more of the model's parameters; load weights of the same model");
  CHECK(refusal({{{"fc.weight", mean}, {"bn.mean", mean}}, {}}) ==
        ": 'fc.weight' is float32[2] and the model has float32[3,17]; load weights of the same model and "
        "number of classes, or skip it (--skip 'fc.*')");
  CHECK(refusal({{{"fc.weight", weight}, {"bn.mean", Tensor(TensorType{DType::int64, Shape{2}})}}, {}}) ==
        ": 'bn.mean' is int64[2] and the model has float32[2]; load weights of the same model and number of "
        "classes, or skip it (--skip 'bn.*')");
  Tensor spoilt = mean;
  spoilt.as<float>()[1] = std::numeric_limits<float>::infinity();
  CHECK(refusal({{{"fc.weight", weight}, {"bn.mean", spoilt}}, {}}) ==
        ": Inf at element 1 of 'bn.mean'; load weights of a run that did not diverge");
}

TEST_CASE("weights that are saved are loaded again, and those that are skipped keep their values") {
  const TemporaryFolder folder;
  const fs::path path = folder / "weights";
  save_weights(path, Model(7).store);
  Model whole(0);
  load_weights(path, whole.store);
  CHECK(whole.store.read("fc.weight") == Model(7).store.read("fc.weight"));
  CHECK(whole.store.read("bn.mean").to_doubles() == std::vector<double>{7, 8});

  Model tuned(0);
  load_weights(path, tuned.store, {"fc.*"});
  CHECK(tuned.store.read("fc.weight") == Model(0).store.read("fc.weight"));
  CHECK(tuned.store.read("bn.mean").to_doubles() == std::vector<double>{7, 8});
  // What is skipped may be missing in the file, and of another shape.
  const Tensor mean = Model::counting({DType::float32, Shape{2}}, 3);
  for (const SafeTensors& contents :
       {SafeTensors{{{"bn.mean", mean}}, {}}, SafeTensors{{{"bn.mean", mean}, {"fc.weight", mean}}, {}}}) {
    write_safetensors(path, contents);
    load_weights(path, tuned.store, {"fc.*"});
    CHECK(tuned.store.read("bn.mean").to_doubles() == std::vector<double>{3, 4});
  }
  CHECK(
      user_error([&] {
        load_weights(path, tuned.store, {"bn.*", "cf.weight"});
      }) ==
      "no parameter is named like 'cf.weight', so that nothing would be skipped; did you mean 'fc.weight'?");
}

TEST_CASE("weights that are not numbers are not saved") {
  const TemporaryFolder folder;
  Model model(0);
  model.store.write("bn.mean", Tensor::of<float>({2}, {0, std::numeric_limits<float>::infinity()}));
  CHECK(user_error([&] { save_weights(folder / "weights", model.store); }).find("'bn.mean'") !=
        std::string::npos);
  CHECK(!fs::exists(folder / "weights"));
}

}  // namespace plexaura::testing
