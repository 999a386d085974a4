#include "core/base/profile.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

#include "core/compile/compile.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::profile_test {

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a profiled run gives an event for each instruction, and the results of any run") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, 3, 5, 5}});
  const Node w = graph.input("w", {DType::float32, {4, 3, 3, 3}});
  const std::vector<ProgramOutput> outputs{{.node = conv2d(x, w)}};
  const auto program = compile(graph, outputs, test_backend());
  Profile profile;
  VM profiled(program, test_backend(), {.profile = &profile});
  VM plain(program, test_backend());
  Tensor ones(x.type());
  for (float& element : ones.as<float>()) element = 1;
  Tensor weights(w.type());
  for (float& element : weights.as<float>()) element = 2;
  for (int i = 0; i < 2; ++i) profiled.run({{"x", ones}, {"w", weights}});
  plain.run({{"x", ones}, {"w", weights}});
  CHECK(profiled.output() == plain.output());

  const std::string text = profile.events();
  CHECK(count(text, "\"ph\":\"X\"") == 2 * program->instructions.size());
  CHECK(text.find("conv2d %") != std::string::npos);
  CHECK(text.find("profile_test.cpp") != std::string::npos);
  CHECK(text.find("GFLOP/s") != std::string::npos);
  CHECK(text.find("GB/s") != std::string::npos);
}

TEST_CASE("what derives from parameters has its events, in the runs that compute it") {
  const TensorType type{DType::float32, {4}};
  Graph graph(Mode::inference);
  const std::vector<ProgramOutput> outputs{
      {.node = graph.input("x", type) * exp(graph.parameter("w", type))}};
  ParameterStore store({{"w", type, ParameterRole::trainable, Initialiser::ones()}});
  const auto program = compile(graph, outputs, test_backend());
  Profile profile;
  VM vm(program, test_backend(), {.store = &store, .profile = &profile});
  const Tensor x(type);
  for (int i = 0; i < 3; ++i) vm.run({{"x", x}});
  const std::string text = profile.events();
  CHECK(count(text, "exp %") == 1);
  CHECK(count(text, "mul %") == 3);
}

TEST_CASE("names with quotes and new lines stay one line of JSON") {
  Profile profile;
  profile.add("a \"b\"\n\\c", "test", 1, 2);
  CHECK(profile.events().find(R"("name":"a \"b\"\\c")") != std::string::npos);
}

TEST_CASE("a trace holds the events of all ranks, each under the number of its rank") {
  const TemporaryFolder folder;
  TraceFile file((folder.path() / "trace.json").string());
  for (const int rank : {0, 1}) {
    Profile profile;
    profile.add(fmt::format("work of {}", rank), "test", 1, 2);
    const std::string events = profile.events(rank);
    file.begin_rank();
    file.write(events.substr(0, 7));
    file.write(events.substr(7));
  }
  file.finish();
  const std::string text = text_of(folder.path() / "trace.json");
  CHECK(text.starts_with("{\"traceEvents\":[\n"));
  CHECK(text.ends_with("}\n]}\n"));
  for (const char* line :
       {R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"rank 1"}},)",
        R"("name":"work of 0","cat":"test","ts":1.000,"dur":2.000,"args":{"detail":""}},)"})
    CHECK(text.find(std::string(line) + '\n') != std::string::npos);
  CHECK(count(text, R"({"ph":"X","pid":0,)") == 1);
  CHECK(count(text, R"({"ph":"X","pid":1,)") == 1);
}

// Skipped with the sanitizer, which ends the program for a text of this length.
TEST_CASE("a span for which there is no memory is counted as missing" * doctest::skip(address_sanitized)) {
  Profile profile;
  CHECK(profile.events().find("lack of memory") == std::string::npos);
  const std::size_t too_long = std::string().max_size() + 1;
  { const ProfileSpan span(&profile, std::string_view("x", too_long), "test"); }
  { const ProfileSpan span(&profile, "after it", "test"); }
  const std::string text = profile.events();
  CHECK(text.find(R"("args":{"labels":"events left out for lack of memory: 1"}})") != std::string::npos);
  CHECK(text.find("after it") != std::string::npos);
}

TEST_CASE("the detail of a span is a number, and bytes where it has some") {
  Profile profile;
  { const ProfileSpan span(&profile, "a", "test"); }
  { const ProfileSpan span(&profile, "b", "test", 3); }
  { const ProfileSpan span(&profile, "c", "test", 0, 4096); }
  const std::string text = profile.events();
  for (const char* detail : {R"("")", R"("3")", R"("0, 4096 bytes")"})
    CHECK(count(text, fmt::format(R"("args":{{"detail":{}}}}})", detail)) == 1);
}

TEST_CASE("times grow") {
  Profile profile;
  const double first = profile.now();
  CHECK(profile.now() >= first);
  CHECK(first >= 0);
}

TEST_CASE("a profile that cannot be created is the user's to mend, and so is a full disk") {
  const TemporaryFolder folder;
  const std::string absent = (folder / "absent/trace.json").string();
  CHECK(user_error([&] { TraceFile{absent}; }) ==
        "cannot create '" + absent +
            "': No such file or directory; name a file in a folder that exists and can be written");
  CHECK(user_error([] { TraceFile("/dev/full").finish(); }) ==
        "cannot write '/dev/full': No space left on device; free space or name another place");
}

}  // namespace plexaura::testing::profile_test
