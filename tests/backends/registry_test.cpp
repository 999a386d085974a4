#include "backends/registry.h"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>

#include "core/base/error.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::registry_test {

namespace {

// Sets PLEXAURA_PLUGIN_PATH for the lifetime of the object.
class PluginPath {
 public:
  explicit PluginPath(const std::string& path) : before_(std::getenv("PLEXAURA_PLUGIN_PATH")) {
    setenv("PLEXAURA_PLUGIN_PATH", path.c_str(), 1);
  }
  ~PluginPath() { setenv("PLEXAURA_PLUGIN_PATH", before_.c_str(), 1); }
  PluginPath(const PluginPath&) = delete;
  PluginPath& operator=(const PluginPath&) = delete;

 private:
  std::string before_;
};

bool is_known(const std::string& name) {
  const auto known = known_backends();
  return std::ranges::find(known, name) != known.end();
}

}  // namespace

TEST_CASE("cpu and portable are always there") {
  CHECK(open_backend("cpu")->info().name == "cpu");
  CHECK(open_backend("portable")->info().name == "portable");
  CHECK(open_backend("cpu")->info().host_memory);
}

TEST_CASE("an unknown backend is refused with the names of those there are") {
  CHECK_THROWS_WITH_AS(open_backend("toaster"),
                       doctest::Contains("no backend 'toaster'; there are: cpu, portable"), UserError);
  CHECK_THROWS_WITH_AS(open_backend("toaster:x"), doctest::Contains("no backend 'toaster'; there are: "),
                       UserError);
  CHECK_THROWS_AS(open_backend(""), UserError);
  CHECK_THROWS_AS(open_backend("../cpu"), UserError);
}

TEST_CASE("options of backends that have none are refused") {
  CHECK_THROWS_WITH_AS(open_backend("cpu", {{"lazy", "1"}}), doctest::Contains("no option 'lazy'"),
                       UserError);
}

TEST_CASE("a device is described by backends that can, and only where it is known") {
  CHECK_THROWS_WITH_AS(open_described_backend("cpu", "h200"),
                       doctest::Contains("the backend 'cpu' cannot describe a device"), UserError);
  CHECK_THROWS_AS(open_described_backend("../cuda", "h200"), UserError);
  const bool in_this_build = is_known("simulated_cuda");
  if (!in_this_build) return;
  const auto cuda = open_described_backend("cuda:tf32=1", "h200");
  CHECK(cuda->info().name == "cuda");
  CHECK(cuda->info().kind.ends_with(", TF32"));
  CHECK_FALSE(cuda->info().host_memory);
  CHECK_THROWS_WITH_AS(open_described_backend("cuda", "h300"),
                       doctest::Contains("no description of a GPU 'h300'"), UserError);
  CHECK_THROWS_WITH_AS(open_described_backend("cuda:describe=h100", "h200"), doctest::Contains("given twice"),
                       UserError);
  CHECK_THROWS_WITH_AS(open_described_backend("cuda:device=1", "h200"),
                       doctest::Contains("there is no GPU 1"), UserError);
}

TEST_CASE("options may stand behind the name of a backend") {
  CHECK(name_of_backend("far:lazy=1,room=2") == "far");
  CHECK(name_of_backend("far") == "far");
  const PluginPath path(PLEXAURA_TEST_PLUGINS);
  CHECK(open_backend("far:lazy=1")->info().name == "far");
  const auto said_of = [](const char* text, const BackendOptions& options = {}) {
    return user_error([&] { open_backend(text, options); });
  };
  CHECK(said_of("far:lazy=1,speed=2") == said_of("far", {{"lazy", "1"}, {"speed", "2"}}));
  CHECK(said_of("cpu:lazy=1") == "the backend 'cpu' has no option 'lazy'; it has none");
  for (const auto& [text, option] :
       {std::pair("far:", ""), {"far:lazy", "lazy"}, {"far:=1", "=1"}, {"far:lazy=1,", ""}}) {
    CAPTURE(text);
    CHECK(said_of(text) == "'" + std::string(option) +
                               "' is not an option of the backend 'far'; write options after the name, as in "
                               "cuda:device=1,tf32=1");
  }
  for (const auto& said : {said_of("far:lazy=1,lazy=0"), said_of("far:lazy=1", {{"lazy", "1"}})})
    CHECK(said == "the option 'lazy' of the backend 'far' is given twice; give it once");
}

TEST_CASE("cuda without its plugin says what is missing") {
  if (is_known("cuda")) return;
  CHECK_THROWS_WITH_AS(open_backend("cuda"),
                       doctest::Contains("needs the plugin plexaura_cuda.so, which is missing in "),
                       UserError);
  CHECK_THROWS_WITH_AS(
      open_backend("cuda"),
      doctest::Contains(
          "build Plexaura with -D PLEXAURA_CUDA=ON (see docs/guide/gpus.md), or use one of the backends that "
          "are there: cpu, portable"),
      UserError);
}

TEST_CASE("a plugin that was built for other headers is refused with both stamps") {
  const TemporaryFolder folder;
  const PluginPath path((folder / "absent").string() + "::" PLEXAURA_TEST_PLUGINS);
  CHECK_THROWS_WITH_AS(open_backend("wrong"), doctest::Contains("contract of long ago"), UserError);
  CHECK_THROWS_WITH_AS(open_backend("wrong"), doctest::Contains(plugin_stamp), UserError);
  CHECK(is_known("wrong"));
}

TEST_CASE("a file that is no plugin is refused by name") {
  const TemporaryFolder folder;
  write_text(folder / "plexaura_broken.so", "not a shared object");
  const PluginPath path(folder.path());
  const std::string text = user_error([] { open_backend("broken"); });
  CAPTURE(text);
  CHECK(text.find("plexaura_broken.so cannot be loaded") != std::string::npos);
  CHECK(text.find("install") == std::string::npos);
}

TEST_CASE("a plugin whose library is missing names it") {
  CHECK_THROWS_WITH_AS(open_backend("lacking"),
                       doctest::Contains("plexaura_lacking.so cannot be loaded: libplexaura_absent.so: "),
                       UserError);
  CHECK_THROWS_WITH_AS(open_backend("lacking"),
                       doctest::Contains("; install that library, or name its folder in LD_LIBRARY_PATH"),
                       UserError);
}

TEST_CASE("what cannot be opened as a plugin is not listed") {
  const std::string folder = PLEXAURA_TEST_PLUGINS "/no_files";
  std::filesystem::create_directories(folder + "/plexaura_folder.so");
  std::filesystem::remove(folder + "/plexaura_dangling.so");
  std::filesystem::create_symlink("nowhere", folder + "/plexaura_dangling.so");
  const PluginPath path(folder);
  CHECK(!is_known("folder"));
  CHECK(!is_known("dangling"));
}

TEST_CASE("the far device is a plugin") {
  CHECK(is_known("far"));
  CHECK(open_backend("far")->info().name == "far");
  CHECK(!open_backend("far")->info().host_memory);
}

TEST_CASE("the backends of the tests are found by the tests alone") {
  const PluginPath nowhere("");
  INFO("plugins beside the core lie in ", core_library_folder());
  for (const char* name : {"far", "wrong"}) {
    CHECK(!is_known(name));
    CHECK_THROWS_WITH_AS(open_backend(name), doctest::Contains("there is no backend"), UserError);
  }
}

TEST_CASE("a plugin is found beside the core") {
  const auto beside = std::filesystem::path(core_library_folder()) / "plexaura_beside.so";
  std::filesystem::copy_file(PLEXAURA_TEST_PLUGINS "/plexaura_far.so", beside,
                             std::filesystem::copy_options::overwrite_existing);
  {
    const PluginPath nowhere("");
    CHECK(is_known("beside"));
    CHECK(open_backend("beside")->info().name == "far");
  }
  std::filesystem::remove(beside);
}

}  // namespace plexaura::testing::registry_test
