#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/busy.h"
#include "core/base/export.h"
#include "core/device/backend_use.h"
#include "core/params/parameter_store.h"
#include "core/vm/vm.h"

namespace plexaura {

// A part of a graph as a function of tensors, compiled once:
//
//   Function f(graph, {x, v}, {loss, slope}, *backend);
//   const std::vector<Tensor> results = f(xs, vs);  // the values of loss and slope
//
// The Function keeps the nodes that it needs, so the graph may be destroyed. It shares the store, and a
// backend that a std::shared_ptr owns; a call throws UserError if any other backend was destroyed. After the
// store is placed anew, for example by an Optimizer, the next call compiles again. It can be moved.
class PLEXAURA_API Function {
 public:
  // `inputs` are inputs of the graph, in the order of the arguments. They include all inputs that the outputs need, and
  // none of them twice. `outputs` are any nodes of the graph, at least one. `store` is needed if the outputs need
  // parameters or buffers. Throws UserError if one of these rules is broken, and what compile() throws.
  Function(const Graph& graph, std::vector<Node> inputs, std::vector<Node> outputs, Backend& backend,
           ParameterStore* store = nullptr);

  // Returns the values of the outputs. Also applies the graph's updates of buffers. The n-th call is step n
  // of seed 0 for random ops. Throws UserError for a wrong number or type of tensors, and while another
  // thread is in a call: each thread needs a clone() of its own.
  template <std::same_as<Tensor>... Tensors>
  std::vector<Tensor> operator()(const Tensors&... inputs) {
    return call(std::array<const Tensor*, sizeof...(Tensors)>{&inputs...});
  }

  // Returns a Function for another thread, with the same program, store and backend. It counts its calls anew. Clones may be
  // called at the same time, unless the graph updates buffers, but not while the store is written or placed.
  Function clone() const;

 private:
  struct Source;
  Function(std::shared_ptr<const Source> source, const BackendUse& backend,
           std::optional<ParameterStore> store);

  std::vector<Tensor> call(std::span<const Tensor* const> inputs);
  void compile_source();
  void start();
  ParameterStore* store() { return store_ ? &*store_ : nullptr; }

  std::shared_ptr<const Source> source_;  // the graph and its inputs' names; null after it was moved from
  BackendUse backend_;
  std::optional<ParameterStore> store_;
  std::shared_ptr<const Program> program_;
  std::unique_ptr<VM> vm_;
  std::uint64_t placed_times_ = 0;  // ParameterStore::placed_times() when the VM was made
  BusyFlag busy_;
};

// Returns the value of one node, to inspect it: evaluate(y, {{"x", tensor}}, *backend). For feeds see
// VM::run(). `store` is needed if the node needs parameters or buffers. Changes no buffer. Compiles in every
// call; use a Function for more calls.
PLEXAURA_API Tensor evaluate(const Node& node, std::span<const Feed> feeds, Backend& backend,
                             ParameterStore* store = nullptr);
PLEXAURA_API Tensor evaluate(const Node& node, std::initializer_list<Feed> feeds, Backend& backend,
                             ParameterStore* store = nullptr);

}  // namespace plexaura
