#include "onnx/format/tensor_data.h"

#include <doctest/doctest.h>
#include <filesystem>

#include "onnx/model.h"

#include "core/base/error.h"
#include "tests/onnx/written_model.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::onnx_tensor_data_test {

namespace {

namespace fs = std::filesystem;

using Entries = std::vector<std::pair<std::string, std::string>>;

std::string model_with(const std::string& location, const Entries& more = {}) {
  WrittenGraph graph;
  graph.node("Add", {"x", "w"}, {"y"});
  graph.external("w", {2}, location, more);
  graph.input("x", {2});
  graph.output("y");
  return graph.model(13);
}

std::string error_of_file(const fs::path& file) {
  try {
    const onnx::FileModel model(file);
    return {};
  } catch (const UserError& error) {
    return error.what();
  }
}

// A folder that has the folder "inner" for models.
struct ModelFolder {
  testing::TemporaryFolder outer;

  ModelFolder() { outer.write("secret", std::string(8, 'x')); }

  std::string error(const std::string& location, const Entries& more = {}) const {
    return error_of_file(outer.write("inner/model.onnx", model_with(location, more)));
  }
};

onnx::TensorProto tensor_of(std::vector<std::int64_t> extents, std::string_view raw) {
  onnx::TensorProto proto;
  proto.name = "t";
  proto.extents = std::move(extents);
  proto.type = onnx::ElementType::float32;
  proto.raw = raw;
  return proto;
}

}  // namespace

TEST_CASE("elements in a file of their own are read below the folder of the model only") {
  const ModelFolder folder;
  CHECK(testing::contains(folder.error("../secret"),
                          "the tensor 'w': its elements are in '../secret', which is not below"));
  CHECK(testing::contains(folder.error((folder.outer / "secret").string()), "which is not below"));
  CHECK(testing::contains(folder.error("."), "which is not below"));
  CHECK(testing::contains(folder.error("missing/../../secret"), "cannot be followed"));
  CHECK(testing::contains(folder.error("missing"), "cannot be followed"));
  fs::create_symlink("../secret", folder.outer / "inner" / "link");
  CHECK(testing::contains(folder.error("link"), "which is not below"));
  fs::create_directory_symlink("..", folder.outer / "inner" / "folder");
  CHECK(testing::contains(folder.error("folder/secret"), "which is not below"));
  folder.outer.write("inner/weights/w", std::string(8, '\0'));
  CHECK(folder.error("weights/w").empty());
  fs::create_symlink("weights/w", folder.outer / "inner" / "inside");
  CHECK(folder.error("inside").empty());
}

TEST_CASE("a model in the current folder reads the files there") {
  const ModelFolder folder;
  folder.outer.write("inner/w", std::string(8, '\0'));
  folder.outer.write("inner/model.onnx", model_with("w"));
  const fs::path before = fs::current_path();
  fs::current_path(folder.outer / "inner");
  const std::string error = error_of_file("model.onnx");
  fs::current_path(before);
  CHECK(error.empty());
}

TEST_CASE("a model that was passed as bytes reads no file") {
  CHECK_THROWS_WITH_AS(
      onnx::FileModel(model_with("w"), "bytes.onnx"),
      "bytes.onnx: the tensor 'w': its elements are in the file 'w', but a model that was passed as "
      "bytes reads no files; pass the path of the model",
      UserError);
}

TEST_CASE("offsets and lengths beyond the file are errors") {
  const ModelFolder folder;
  folder.outer.write("inner/w", std::string(16, '\0'));
  CHECK(folder.error("w", {{"offset", "8"}}).empty());
  CHECK(testing::contains(folder.error("w", {{"offset", "17"}}),
                          "its offset 17 is beyond the end of its file"));
  CHECK(testing::contains(folder.error("w", {{"offset", "12"}, {"length", "8"}}),
                          "its elements end beyond the end"));
  CHECK(testing::contains(folder.error("w", {{"offset", "18446744073709551608"}, {"length", "8"}}),
                          "is beyond the end"));
  CHECK(testing::contains(folder.error("w", {{"offset", "18446744073709551616"}}), "is not a number"));
  CHECK(testing::contains(folder.error("w", {{"length", "18446744073709551615"}}),
                          "it has 18446744073709551615 bytes"));
  CHECK(testing::contains(folder.error("w", {{"offset", "-8"}}), "its offset '-8' is not a number"));
  CHECK(testing::contains(folder.error("w"), "it has 16 bytes, but float32[2] needs 8"));
}

TEST_CASE("a file that declares more elements than it has is an error before memory is allocated") {
  WrittenGraph graph;
  graph.node("Add", {"x", "w"}, {"y"});
  graph.initialiser("w", {std::int64_t{25} << 30}, {1});
  graph.input("x", {1});
  graph.output("y");
  CHECK_THROWS_WITH_AS(
      onnx::FileModel(graph.model(13), "large.onnx"),
      "large.onnx: the tensor 'w': it has 4 bytes, but float32[26843545600] needs 107374182400", UserError);
}

TEST_CASE("extents whose product does not fit into 64 bits are an error") {
  const std::int64_t large = std::int64_t{1} << 32;
  CHECK_THROWS_AS(onnx::checked_type_of(tensor_of({large, large}, "abcd"), {}), UserError);
  CHECK_THROWS_AS(onnx::checked_type_of(tensor_of({0, large, large}, {}), {}), UserError);
  CHECK_THROWS_AS(onnx::checked_type_of(tensor_of({-1}, "abcd"), {}), UserError);
  CHECK_THROWS_AS(onnx::checked_type_of(tensor_of(std::vector<std::int64_t>(65, 1), "abcd"), {}), UserError);
  CHECK(onnx::checked_type_of(tensor_of(std::vector<std::int64_t>(64, 1), "abcd"), {}).shape.rank() == 64);
}

TEST_CASE("elements are in one field, which belongs to their type") {
  onnx::TensorProto both = tensor_of({1}, "abcd");
  both.floats = {1};
  CHECK_THROWS_WITH_AS(onnx::read_tensor(both, {}),
                       "the tensor 't': it has elements in several fields; they must be in one", UserError);
  onnx::TensorProto odd = tensor_of({1}, {});
  odd.integers = {1};
  CHECK_THROWS_WITH_AS(onnx::read_tensor(odd, {}),
                       "the tensor 't': its elements are in a field of another type than float32", UserError);
}

}  // namespace plexaura::onnx_tensor_data_test
