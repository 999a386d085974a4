#include "training/checkpoints/kernel_times.h"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <optional>
#include <sys/file.h>
#include <thread>

#include "core/compile/compile.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/two_speeds.h"
#include "training/files/file.h"

namespace plexaura::testing::kernel_times_test {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// Returns a tuner that has measured one kernel, for values with this number of elements.
Tuner with_times(std::int64_t elements) {
  TwoSpeeds backend(test_backend(), "relu", 200us, 0us);
  Graph graph;
  const std::vector<ProgramOutput> outputs{
      {.node = relu(graph.input("x", {DType::float32, {elements}})) + 1}};
  Tuner tuner(Tuning::cached);
  compile(graph, outputs, backend, {.tuner = &tuner});
  REQUIRE(tuner.measured() == 1);
  return tuner;
}

// Sets or unsets an environment variable for the lifetime of the object.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Variable() { set(old_ ? old_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) { value == nullptr ? ::unsetenv(name_) : ::setenv(name_, value, 1); }

  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("times of kernels lie in the user's cache") {
  const Variable home("HOME", "/home/ann");
  {
    const Variable cache("XDG_CACHE_HOME", "/var/cache/ann");
    CHECK(kernel_times_file() == "/var/cache/ann/plexaura/kernel_times");
  }
  for (const char* other : {static_cast<const char*>(nullptr), "", "not/absolute"}) {
    const Variable cache("XDG_CACHE_HOME", other);
    CHECK(kernel_times_file() == "/home/ann/.cache/plexaura/kernel_times");
    const Variable nobody("HOME", nullptr);
    CHECK(kernel_times_file().empty());
  }
}

TEST_CASE("times that were kept are read again, those of two runs together") {
  const TemporaryFolder folder;
  const fs::path file = folder / "made/when/needed";
  const Tuner one = with_times(5);
  const Tuner two = with_times(6);
  Tuner read(Tuning::cached);
  CHECK(load_kernel_times(file, read).empty());
  CHECK(read.to_text() == Tuner(Tuning::cached).to_text());
  CHECK(save_kernel_times(file, one).empty());
  CHECK(save_kernel_times(file, two).empty());
  CHECK(load_kernel_times(file, read).empty());
  Tuner both(Tuning::cached);
  both.add(one.to_text());
  both.add(two.to_text());
  CHECK(read.to_text() == both.to_text());
  CHECK(std::distance(fs::directory_iterator(file.parent_path()), {}) == 2);  // includes its lock
}

TEST_CASE("only what was measured now is written over what others have written since") {
  const TemporaryFolder folder;
  const fs::path file = folder / "kernel_times";
  const Tuner old = with_times(5);
  Tuner measured = with_times(6);
  REQUIRE(measured.add(old.to_text()));
  const Tuner newer = with_times(5);
  REQUIRE(newer.to_text() != old.to_text());
  CHECK(save_kernel_times(file, newer).empty());
  CHECK(save_kernel_times(file, measured).empty());
  Tuner expected(Tuning::off);
  expected.add(newer.to_text());
  expected.add(measured.to_text(Tuner::Part::own));
  CHECK(read_text(file) == expected.to_text());
}

TEST_CASE("who keeps times waits for another who does, and adds to what that one wrote") {
  const TemporaryFolder folder;
  const fs::path file = folder / "kernel_times";
  const Tuner one = with_times(5);
  const Tuner two = with_times(6);
  const FileDescriptor lock(::open((file.string() + ".lock").c_str(), O_RDWR | O_CREAT, 0666));
  REQUIRE(::flock(lock.number(), LOCK_EX) == 0);
  std::thread waits([&] { CHECK(save_kernel_times(file, one).empty()); });
  std::this_thread::sleep_for(300ms);
  write_text(file, two.to_text());
  REQUIRE(::flock(lock.number(), LOCK_UN) == 0);
  waits.join();
  Tuner both(Tuning::off);
  both.add(one.to_text());
  both.add(two.to_text());
  CHECK(read_text(file) == both.to_text());
}

TEST_CASE("a damaged file is left aside with a sentence, and written anew") {
  const TemporaryFolder folder;
  const fs::path file = folder / "kernel_times";
  const Tuner tuner = with_times(5);
  CHECK(save_kernel_times(file, tuner).empty());
  const std::string whole = read_text(file);
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() - 3), std::string("nonsense\n")}) {
    write_text(file, text);
    Tuner read(Tuning::cached);
    const std::string sentence = load_kernel_times(file, read);
    CHECK(sentence.find(file.string()) != std::string::npos);
    CHECK(sentence.find("damaged") != std::string::npos);
    CHECK(read.to_text() == Tuner(Tuning::cached).to_text());
    CHECK(save_kernel_times(file, tuner).empty());
    CHECK(read_text(file) == whole);
  }
}

TEST_CASE("a folder that cannot be written is no error but a sentence") {
  const TemporaryFolder folder;
  write_text(folder / "file", "");
  const std::string sentence = save_kernel_times(folder / "file/below/kernel_times", with_times(5));
  CHECK(sentence.find("are not kept") != std::string::npos);
  CHECK(sentence.find((folder / "file").string()) != std::string::npos);
  CHECK(save_kernel_times({}, with_times(5)).find("XDG_CACHE_HOME") != std::string::npos);
  Tuner tuner(Tuning::cached);
  CHECK(load_kernel_times({}, tuner).empty());
  fs::create_directory(folder / "folder");
  CHECK(load_kernel_times(folder / "folder", tuner).find("measured again") != std::string::npos);
}

}  // namespace plexaura::testing::kernel_times_test
