// Runs the backend tests of the standard, which other implementations run too.

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "onnx/runner.h"
#include "onnx/stored_data.h"

#include "core/base/error.h"
#include "tests/support/backend.h"

namespace plexaura::conformance_test {

namespace {

namespace fs = std::filesystem;

std::string difference_of_run(onnx::FileModel& model, onnx::Runner& run, const fs::path& data) {
  const std::vector<Tensor> stored = onnx::read_stored_tensors(data, "input");
  if (stored.size() != model.inputs().size()) return "the number of stored inputs differs";
  std::map<std::string, Tensor> inputs;
  for (std::size_t i = 0; i < stored.size(); ++i) inputs[model.inputs()[i].name] = stored[i];
  const std::vector<Tensor> outputs = run(inputs);
  const std::vector<Tensor> expected = onnx::read_stored_tensors(data, "output");
  if (outputs.size() != expected.size()) return "the number of outputs differs";
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string found = onnx::difference(outputs[i], expected[i]);
    if (!found.empty()) return fmt::format("output {}: {}", i, found);
  }
  return {};
}

std::string difference_of_case(const fs::path& folder) {
  try {
    onnx::FileModel model(folder / "model.onnx");
    ParameterStore store = model.make_store();
    onnx::Runner run(model, store, testing::test_backend());
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (!entry.is_directory()) continue;
      std::string found = difference_of_run(model, run, entry.path());
      if (!found.empty()) return found;
    }
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

// The contents of tests/onnx/scope.txt.
struct Expectations {
  std::map<std::string, std::string> out_of_scope;  // the reason by the name of the case
  std::set<std::string> failing;                    // cases in scope that fail
  std::map<std::string, int> floor;                 // the smallest number of cases that pass by folder
};

Expectations read_expectations() {
  std::ifstream file(PLEXAURA_SOURCE "/tests/onnx/scope.txt");
  Expectations read;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind;
    std::string name;
    words >> kind >> name;
    if (kind.empty() || kind[0] == '#') continue;
    if (kind == "floor")
      words >> read.floor[name];
    else if (kind == "fails")
      read.failing.insert(name);
    else
      read.out_of_scope[name] = kind;
  }
  return read;
}

struct Results {
  int passed = 0;
  int failed = 0;
  std::map<std::string, int> out_of_scope;
  std::vector<std::string> changes;  // cases that pass or fail unlike before, one sentence each
};

void add_case(Results& results, const std::string& name, const std::string& found, bool failed_before) {
  ++(found.empty() ? results.passed : results.failed);
  if (found.empty() && failed_before)
    results.changes.push_back(fmt::format("{} passes now; remove it from tests/onnx/scope.txt", name));
  if (!found.empty() && !failed_before)
    results.changes.push_back(fmt::format("{} fails: {}", name, found.substr(0, 300)));
}

Results run_folder(const fs::path& folder, const Expectations& expectations) {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(folder)) cases.push_back(entry.path());
  std::ranges::sort(cases);
  Results results;
  for (const fs::path& path : cases) {
    const std::string name = path.filename();
    if (const auto found = expectations.out_of_scope.find(name); found != expectations.out_of_scope.end())
      ++results.out_of_scope[found->second];
    else
      add_case(results, name, difference_of_case(path), expectations.failing.contains(name));
  }
  return results;
}

}  // namespace

TEST_CASE("the standard's backend tests pass, but for those that are recorded") {
  const fs::path suite = "/usr/share/libonnx-testdata/data";
  if (!fs::exists(suite)) {
    fmt::print(
        "skipped: there are no tests of the standard; install them with tools/install_packages onnx\n");
    return;
  }
  const Expectations expectations = read_expectations();
  for (const auto& [folder, floor] : expectations.floor) {
    const Results results = run_folder(suite / folder, expectations);
    fmt::print("{}: {} passed, {} failed", folder, results.passed, results.failed);
    for (const auto& [reason, count] : results.out_of_scope) fmt::print(", {} {}", count, reason);
    fmt::print("\n");
    INFO("in the folder ", folder);
    for (const std::string& change : results.changes) CHECK_MESSAGE(false, change);
    CHECK_MESSAGE(results.passed >= floor, "fewer cases pass than before");
  }
}

}  // namespace plexaura::conformance_test
