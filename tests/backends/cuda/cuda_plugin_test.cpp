// Tests the plugin as built with a CUDA toolkit on a machine without a GPU: it can be opened, and reports
// what is missing.

#include <cstdlib>
#include <cuda.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/device/plugin.h"

namespace plexaura::testing::cuda_plugin_test {

namespace {

const PluginEntry& plugin() {
  void* const object = dlopen(PLEXAURA_CUDA_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) FAIL(dlerror());
  return *reinterpret_cast<const PluginEntry* (*)()>(dlsym(object, plugin_entry_name))();
}

// Asks in a separate process, because a process that has loaded a driver cannot load another one.
bool has_driver() {
  const pid_t child = fork();
  if (child == 0) _exit(dlopen("libcuda.so.1", RTLD_NOW) == nullptr ? 1 : 0);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

std::string answer_to(const BackendOptions& options) {
  try {
    plugin().open(options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "opened";
}

// Returns the result of `say` in a separate process. A driver is loaded once for each process, and opening
// the plugin loads it, because cuBLASLt does.
std::string said_by_child(const std::function<std::string()>& say) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string answer = say();
    _exit(write(ends[1], answer.data(), answer.size()) == static_cast<ssize_t>(answer.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string answer;
  char piece[256];
  for (ssize_t count = 0; (count = read(ends[0], piece, sizeof piece)) > 0;)
    answer.append(piece, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  return answer;
}

std::string answer_with_driver(const char* version, const char* init) {
  return said_by_child([=] {
    setenv("FAKE_DRIVER_VERSION", version, 1);
    setenv("FAKE_DRIVER_INIT", init, 1);
    if (dlopen(PLEXAURA_FAKE_CUDA_DRIVER, RTLD_NOW | RTLD_GLOBAL) == nullptr) _exit(2);
    return answer_to({});
  });
}

}  // namespace

TEST_CASE("the plugin of CUDA is opened where there is no GPU") {
  CHECK(said_by_child([] { return std::string(plugin().stamp); }) == plugin_stamp);
}

TEST_CASE("without a driver CUDA's plugin names the library that is missing") {
  if (has_driver()) return;
  CHECK(said_by_child([] { return answer_to({}); }) ==
        "the backend 'cuda' needs NVIDIA's driver, and this machine does not have its library libcuda.so.1; "
        "install the driver, or use the backend 'cpu'");
}

TEST_CASE("a driver that is too old for CUDA's plugin is refused with both versions") {
  CHECK(
      answer_with_driver("11020", "0") ==
      fmt::format(
          "the backend 'cuda' was built with CUDA {}.{}, and the driver of this machine knows 11.2 at most; "
          "install a newer driver, or use the backend 'cpu'",
          CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10));
}

TEST_CASE("a driver without a GPU is told from no driver") {
  constexpr const char* no_device = "100";
  CHECK(
      answer_with_driver("99000", no_device) ==
      "the backend 'cuda' finds no GPU that it can use (no CUDA-capable device is detected); use the backend "
      "'cpu'");
}

TEST_CASE("a wrong option of CUDA's plugin is refused before it asks for a driver") {
  CHECK(said_by_child([] {
          return answer_to({{"lazy", "1"}});
        }) == "the backend 'cuda' has no option 'lazy'; it has: branches, device, fuse, tf32");
  CHECK(said_by_child([] {
          return answer_to({{"device", "-1"}});
        }) == "the option 'device' of the backend 'cuda' is '-1'; it must be the number of a GPU, from 0");
}

}  // namespace plexaura::testing::cuda_plugin_test
