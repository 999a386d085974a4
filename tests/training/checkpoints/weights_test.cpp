#include "training/checkpoints/weights.h"

#include <doctest/doctest.h>
#include <limits>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/tiny_store.h"

namespace plexaura::testing::weights_test {

namespace fs = std::filesystem;

TEST_CASE("weights load from files of other makers: names, aliases, counters, types") {
  const TemporaryFolder folder;
  const TensorType wide{DType::float64, Shape{3, 17}};
  TinyStore model(0);
  write_safetensors(folder / "weights", {{{"tied.weight", TinyStore::counting(wide, 7)},
                                          {"bn.mean", TinyStore::counting({DType::float16, Shape{2}}, 3)},
                                          {"bn.num_batches_tracked", Tensor::scalar(std::int64_t{5})}},
                                         {{"format", "pt"}}});
  load_weights(folder / "weights", model.store);
  CHECK(model.weight() == 7);
  CHECK(model.store.read("bn.mean").to_doubles() == std::vector<double>{3, 4});
}

TEST_CASE("weights of another model are refused with the first name that does not fit") {
  const TemporaryFolder folder;
  const fs::path path = folder / "weights";
  TinyStore model(0);
  const Tensor weight = TinyStore::counting({DType::float32, Shape{3, 17}}, 1);
  const Tensor mean = TinyStore::counting({DType::float32, Shape{2}}, 1);
  const auto refusal = [&](const SafeTensors& contents) {
    write_safetensors(path, contents);
    return user_error([&] { load_weights(path, model.store); }).substr(path.string().size());
  };
  CHECK(
      refusal({{{"fc.weigth", weight}}, {}}) ==
      ": the model has no parameter 'fc.weigth'; did you mean 'fc.weight'?; load weights of the same model, "
      "or skip it with the pattern 'fc.weigth'");
  CHECK(refusal({{{"fc.weight", weight}}, {}}) ==
        " lacks 'bn.mean' of the model's parameters; load weights of the same model, or skip what keeps its "
        "initial value with the pattern 'bn.*'");
  CHECK(refusal({{}, {}}).starts_with(" lacks 'bn.mean' and 1 more of the model's parameters; "));
  CHECK(refusal({{{"fc.weight", mean}, {"bn.mean", mean}}, {}}) ==
        ": 'fc.weight' is float32[2] and the model has float32[3,17]; load weights of the same model and "
        "number of classes, or skip it with the pattern 'fc.*'");
  CHECK(refusal({{{"fc.weight", weight}, {"bn.mean", Tensor(TensorType{DType::int64, Shape{2}})}}, {}}) ==
        ": 'bn.mean' is int64[2] and the model has float32[2]; load weights of the same model and number of "
        "classes, or skip it with the pattern 'bn.*'");
  Tensor spoilt = mean;
  spoilt.as<float>()[1] = std::numeric_limits<float>::infinity();
  CHECK(refusal({{{"fc.weight", weight}, {"bn.mean", spoilt}}, {}}) ==
        ": Inf at element 1 of 'bn.mean'; load weights of a run that did not diverge");
}

TEST_CASE("the pattern that skips a parameter without a layer is its name") {
  const TemporaryFolder folder;
  ParameterStore store({{"w", {DType::float32, {2}}, ParameterRole::trainable, Initialiser::ones()}});
  write_safetensors(folder / "weights", {{{"w", Tensor(TensorType{DType::float32, Shape{3}})}}, {}});
  CHECK(
      user_error([&] { load_weights(folder / "weights", store); }).ends_with("skip it with the pattern 'w'"));
}

TEST_CASE("where nothing can be skipped, no error advises to skip") {
  const TemporaryFolder folder;
  const fs::path path = folder / "weights";
  TinyStore model(0);
  const Tensor weight = TinyStore::counting({DType::float32, Shape{3, 17}}, 1);
  const Tensor mean = TinyStore::counting({DType::float32, Shape{2}}, 1);
  const auto refusal = [&](const SafeTensors& contents) {
    write_safetensors(path, contents);
    return user_error([&] { load_all_weights(path, model.store); });
  };
  CHECK(refusal({{{"other", weight}}, {}})
            .ends_with("has no parameter 'other'; load weights of the same model"));
  CHECK(
      refusal({{{"fc.weight", weight}}, {}}).ends_with("model's parameters; load weights of the same model"));
  CHECK(
      refusal({{{"fc.weight", mean}}, {}}).ends_with("load weights of the same model and number of classes"));
}

TEST_CASE("a value that the model's precision cannot hold is refused") {
  const TemporaryFolder folder;
  Tensor weight = TinyStore::counting({DType::float64, Shape{3, 17}}, 1);
  weight.as<double>()[20] = -1e300;
  const Tensor mean = TinyStore::counting({DType::float64, Shape{2}}, 1);
  write_safetensors(folder / "weights", {{{"fc.weight", weight}, {"bn.mean", mean}}, {}});
  TinyStore narrow(0);
  CHECK(user_error([&] { load_weights(folder / "weights", narrow.store); }) ==
        (folder / "weights").string() +
            ": 'fc.weight' holds -1e+300, which float32 cannot; load it with training.precision=float64");
  TinyStore wide(0, DType::float64);
  load_weights(folder / "weights", wide.store);
  CHECK(wide.store.read("fc.weight").to_doubles()[20] == -1e300);
}

TEST_CASE("weights that are saved are loaded again, and those that are skipped keep their values") {
  const TemporaryFolder folder;
  const fs::path path = folder / "weights";
  save_weights(path, TinyStore(7).store);
  TinyStore whole(0);
  load_weights(path, whole.store);
  CHECK(whole.store.read("fc.weight") == TinyStore(7).store.read("fc.weight"));
  CHECK(whole.store.read("bn.mean").to_doubles() == std::vector<double>{7, 8});

  TinyStore tuned(0);
  load_weights(path, tuned.store, {"fc.*"});
  CHECK(tuned.store.read("fc.weight") == TinyStore(0).store.read("fc.weight"));
  CHECK(tuned.store.read("bn.mean").to_doubles() == std::vector<double>{7, 8});
  // A skipped tensor may be missing in the file, or have another shape.
  const Tensor mean = TinyStore::counting({DType::float32, Shape{2}}, 3);
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

TEST_CASE("a tied parameter is skipped by each of its names, whichever the file has") {
  const TemporaryFolder folder;
  const Tensor mean = TinyStore::counting({DType::float32, Shape{2}}, 3);
  const Tensor weight = TinyStore::counting({DType::float32, Shape{3, 17}}, 7);
  for (const char* name : {"fc.weight", "tied.weight"})
    for (const char* pattern : {"fc.*", "tied.*"}) {
      write_safetensors(folder / "weights", {{{name, weight}, {"bn.mean", mean}}, {}});
      TinyStore model(0);
      load_weights(folder / "weights", model.store, {pattern});
      CHECK(model.weight() == 0);
    }
}

TEST_CASE("a pattern that fits only what is never loaded is refused") {
  const TemporaryFolder folder;
  write_safetensors(folder / "weights", {{{"bn.num_batches_tracked", Tensor::scalar(std::int64_t{5})}}, {}});
  TinyStore model(0);
  for (const char* pattern : {"*.num_batches_tracked", "[bf]*", "fc\\.weight"})
    CHECK(user_error([&] {
            load_weights(folder / "weights", model.store, {pattern});
          }).starts_with(std::string("no parameter is named like '") + pattern));
}

TEST_CASE("weights that are not numbers are not saved") {
  const TemporaryFolder folder;
  TinyStore model(0);
  model.store.write("bn.mean", Tensor::of<float>({2}, {0, std::numeric_limits<float>::infinity()}));
  CHECK(
      user_error([&] { save_weights(folder / "weights", model.store); }) ==
      "Inf at element 1 of 'bn.mean': a file of weights contains only finite numbers, so nothing was saved; "
      "look "
      "for what wrote such a number into the store");
  CHECK(!fs::exists(folder / "weights"));
}

TEST_CASE("tensors that the model lacks may be skipped") {
  const TemporaryFolder folder;
  const Tensor weight = TinyStore::counting({DType::float32, Shape{3, 17}}, 1);
  const Tensor mean = TinyStore::counting({DType::float32, Shape{2}}, 1);
  write_safetensors(folder / "w", {{{"fc.weight", weight}, {"aux.weight", mean}, {"bn.mean", mean}}, {}});
  TinyStore model(0);
  load_weights(folder / "w", model.store, {"aux.*"});
  CHECK(model.weight() == 1);
  CHECK(!first_skipped(model.store, {"aux.*"}));
  CHECK(first_skipped(model.store, {"aux.*", "bn.*"}) == "bn.mean");
}

TEST_CASE("the prefix of a wrapped model is left out, where all names have it") {
  const TemporaryFolder folder;
  const Tensor weight = TinyStore::counting({DType::float32, Shape{3, 17}}, 5);
  const Tensor mean = TinyStore::counting({DType::float32, Shape{2}}, 1);
  for (const std::string prefix : {"module.", "_orig_mod."}) {
    TinyStore model(0);
    write_safetensors(folder / "w", {{{prefix + "fc.weight", weight}, {prefix + "bn.mean", mean}}, {}});
    load_weights(folder / "w", model.store);
    CHECK(model.weight() == 5);
    load_weights(folder / "w", model.store, {"bn.*"});
    write_safetensors(folder / "w", {{{prefix + "fc.weight", weight}, {"bn.mean", mean}}, {}});
    CHECK(user_error([&] { load_weights(folder / "w", model.store); }).find("has no parameter '" + prefix) !=
          std::string::npos);
  }
}

TEST_CASE("a folder or a run's state in the place of weights is told so") {
  const TemporaryFolder folder;
  TinyStore model(0);
  const std::string path = folder.path().string();
  CHECK(user_error([&] { load_weights(folder.path(), model.store); }) ==
        "'" + path +
            "' is a folder; name a file of weights, such as the weights.safetensors of a checkpoint");
  write_text(folder / "weights.safetensors", "");
  CHECK(user_error([&] { load_weights(folder.path(), model.store); }) ==
        "'" + path + "' is a folder; name its file of weights, '" + path + "/weights.safetensors'");
  write_safetensors(folder / "state", {{{"run.step", Tensor::scalar(std::int64_t{1})}}, {}});
  CHECK(
      user_error([&] { load_weights(folder / "state", model.store); }) ==
      path +
          "/state is the state of a run and contains no weights; name the weights.safetensors in its folder");
}

TEST_CASE("weights say what data they were trained on, where that is known") {
  const TemporaryFolder folder;
  const TinyStore model(0);
  const auto origin_of = [](const fs::path& path) {
    return data_origin_in(read_safetensors(path).metadata, path);
  };
  save_weights(folder / "known", model.store, {}, 0xfedcba9876543210);
  CHECK(origin_of(folder / "known") == 0xfedcba9876543210);
  CHECK(!has_settings(read_safetensors_header(folder / "known").metadata));
  save_weights(folder / "unknown", model.store);
  CHECK(!origin_of(folder / "unknown"));
  write_safetensors(folder / "odd", {{}, {{"data.origin", "12x"}}});
  CHECK(user_error([&] { origin_of(folder / "odd"); }).find("has data.origin '12x', which is not a hash") !=
        std::string::npos);
}

}  // namespace plexaura::testing::weights_test
