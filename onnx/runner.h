#pragma once

#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "onnx/model.h"

#include "core/vm/vm.h"

namespace plexaura::onnx {

// Computes a model for tensors, without gradients. Inputs that determine shapes are values of the program: it is
// compiled for each of their values. The programs for the shapes and values that were used last are kept.
class Runner {
 public:
  static constexpr std::size_t kept_programs = 16;

  // The model must outlive this object. The store is one that model.make_store() has made.
  Runner(const FileModel& model, ParameterStore& store, Backend& backend);

  // Returns the outputs in the order of the file. Throws UserError as a call of the model does.
  std::vector<Tensor> operator()(const std::map<std::string, Tensor>& inputs);

  // Returns the inputs that have determined shapes so far.
  const std::set<std::string>& value_inputs() const { return value_inputs_; }

 private:
  struct Compiled {
    std::map<std::string, TensorType> types;  // types of all inputs
    std::map<std::string, Tensor> values;     // values of the inputs that have determined shapes
    std::vector<std::string> fed;             // the inputs that the program reads
    std::size_t outputs = 0;
    std::unique_ptr<VM> vm;
  };

  static bool fits(const Compiled& compiled, const std::map<std::string, Tensor>& inputs);
  Compiled& compiled_for(const std::map<std::string, Tensor>& inputs);
  std::vector<Node> build(Graph& graph, const std::map<std::string, Tensor>& inputs) const;
  void compile(const std::map<std::string, Tensor>& inputs);

  const FileModel& model_;
  ParameterStore store_;
  Backend& backend_;
  std::set<std::string> value_inputs_;
  std::list<Compiled> compiled_;  // the one used last comes first
};

}  // namespace plexaura::onnx
