// Computes calls of ops and their gradients. dev/compare_ops uses this program.

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include "dev/compare_ops_parts/op_builders.h"
#include "dev/processor_clock.h"
#include "tools/tool.h"

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/compile/compile.h"
#include "core/vm/vm.h"
#include "training/files/safetensors.h"

namespace plexaura {

namespace {

struct Options {
  std::string cases;
  std::string result;
  std::string backend = "cpu";
  bool times = false;
};

// The call of an op that a file describes. The file's metadata has under CASE the op's name and its options, as
// "clip low=-1 high=1". The tensors CASE.input.I are operands, and CASE.cotangent.I is that of result I. Gradients are
// computed by the operands whose numbers the option `wrt` lists.
struct Case {
  std::string name;
  std::string op;
  std::map<std::string, std::string> options;
  std::map<std::string, Tensor> tensors;
};

std::vector<Case> read_cases(const std::string& path) {
  const SafeTensors file = read_safetensors(path);
  std::map<std::string, Case> cases;
  for (const auto& [name, text] : file.metadata) {
    if (name.find('.') != std::string::npos) continue;
    Case& read = cases[name];
    read.name = name;
    std::istringstream words(text);
    words >> read.op;
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos)
        throw UserError(
            fmt::format("{}: case {} has '{}', which is not an option like axis=1", path, name, word));
      read.options[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  for (const auto& [name, tensor] : file.tensors) {
    const std::size_t dot = name.find('.');
    const auto found = cases.find(name.substr(0, dot));
    if (dot == std::string::npos || found == cases.end())
      throw UserError(fmt::format("{}: no case has the tensor '{}'", path, name));
    found->second.tensors.emplace(name.substr(dot + 1), tensor);
  }
  std::vector<Case> all;
  for (auto& [name, read] : cases) all.push_back(std::move(read));
  return all;
}

// A compiled case.
class CompiledCase {
 public:
  CompiledCase(const Case& call, Backend& backend) : call_(call) {
    const auto builder = op_builders().find(call.op);
    if (builder == op_builders().end()) throw UserError(fmt::format("there is no op '{}'", call.op));
    Graph graph(Mode::train);
    OpCall arguments{graph, {}, call.options};
    for (std::size_t i = 0; call.tensors.contains(fmt::format("input.{}", i)); ++i)
      arguments.inputs.push_back(add_input(graph, fmt::format("input.{}", i)));
    const std::vector<Node> results = builder->second(arguments);
    for (std::size_t i = 0; i < results.size(); ++i) add_output(fmt::format("output.{}", i), results[i]);
    if (arguments.has("wrt")) add_gradients(graph, arguments, results);
    const auto program = compile(graph, outputs_, backend);
    const auto workspace = std::make_shared<Workspace>(backend, program->arena_bytes, program->feed_bytes);
    fill_feeds(workspace->feeds());
    vm_ = std::make_unique<VM>(program, backend, VmOptions{.workspace = workspace});
  }

  void run() {
    vm_->run(feeds_);
    vm_->wait();
  }

  void store(SafeTensors& file) {
    run();
    for (std::size_t i = 0; i < names_.size(); ++i)
      file.tensors.emplace_back(fmt::format("{}.{}", call_.name, names_[i]), vm_->output(i));
  }

 private:
  Node add_input(Graph& graph, const std::string& name) {
    inputs_.push_back(name);
    return graph.input(name, call_.tensors.at(name).type());
  }

  // Writes the inputs to memory that kernels read, so that a run copies nothing.
  void fill_feeds(FeedMemory& memory) {
    std::vector<TensorType> types;
    for (const std::string& name : inputs_) types.push_back(call_.tensors.at(name).type());
    values_ = memory.take(types);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor& value = call_.tensors.at(inputs_[i]);
      std::copy_n(value.data(), value.bytes(), values_[i].data());
      feeds_.emplace_back(inputs_[i], values_[i]);
    }
  }

  void add_output(std::string name, const Node& node) {
    names_.push_back(std::move(name));
    outputs_.push_back({.node = node});
  }

  void add_gradients(Graph& graph, const OpCall& arguments, const std::vector<Node>& results) {
    std::vector<Node> floating;
    std::vector<Node> cotangents;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string name = fmt::format("cotangent.{}", i);
      if (!call_.tensors.contains(name)) continue;
      floating.push_back(results[i]);
      cotangents.push_back(add_input(graph, name));
    }
    const std::vector<std::int64_t> places = arguments.integers("wrt");
    std::vector<Node> wrt;
    for (const std::int64_t place : places) wrt.push_back(arguments[static_cast<std::size_t>(place)]);
    const std::vector<Node> gradients = vjp(floating, cotangents, wrt);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (!gradients[i].is_empty()) add_output(fmt::format("gradient.{}", places[i]), gradients[i]);
  }

  const Case& call_;
  std::vector<std::string> inputs_;
  std::vector<Tensor> values_;  // values of inputs_
  std::vector<Feed> feeds_;
  std::vector<std::string> names_;
  std::vector<ProgramOutput> outputs_;
  std::unique_ptr<VM> vm_;
};

void compute(const Options& options) {
  const auto backend = open_backend(options.backend);
  SafeTensors result;
  for (const Case& call : read_cases(options.cases)) {
    try {
      CompiledCase(call, *backend).store(result);
    } catch (const UserError& error) {
      result.metadata[call.name] = error.what();
    }
  }
  write_safetensors(options.result, result);
}

// Reads lines "CASE RUNS". For each, prints the seconds of processor time of one run of the case.
void measure(const Options& options) {
  const auto backend = open_backend(options.backend);
  const std::vector<Case> cases = read_cases(options.cases);
  std::map<std::string, std::unique_ptr<CompiledCase>> compiled;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name;
    int runs = 0;
    words >> name >> runs;
    const auto call =
        std::find_if(cases.begin(), cases.end(), [&](const Case& one) { return one.name == name; });
    if (call == cases.end() || runs < 1)
      throw UserError(fmt::format("'{}' must be the name of a case and a number of runs, as '3 10'", line));
    auto& program = compiled[name];
    if (program == nullptr) program = std::make_unique<CompiledCase>(*call, *backend);
    const double start = processor_seconds();
    for (int i = 0; i < runs; ++i) program->run();
    fmt::print("{:.9f}\n", (processor_seconds() - start) / runs);
    std::fflush(stdout);
  }
}

}  // namespace

}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  CLI::App app("Computes calls of ops, with their gradients", "compute_ops");
  Options options;
  app.option_defaults()->always_capture_default();
  app.add_option("CASES", options.cases, "safetensors file with calls of ops, as dev/compare_ops writes it")
      ->required();
  app.add_option("RESULT", options.result, "safetensors file to write: results, gradients and errors");
  app.add_option("--backend", options.backend, "cpu, portable or a plugin; options follow its name");
  app.add_flag("--times", options.times,
               "reads lines 'CASE RUNS' from the standard input, and prints the seconds of a run for each");
  return run_tool(app, argc, argv, [&] {
    if (options.times != options.result.empty())
      throw UserError("name the file RESULT to write, or take --times, which writes none");
    if (options.times)
      measure(options);
    else
      compute(options);
  });
}
