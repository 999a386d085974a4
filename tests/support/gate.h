#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "core/graph/op.h"

namespace plexaura::testing {

// Stops a kernel in the middle of a run, so that a test can do something else meanwhile.
class Gate {
 public:
  void shut() { shut_ = true; }
  void open() {
    shut_ = false;
    shut_.notify_all();
  }
  // Waits until a kernel waits at the gate.
  void await_arrival() const { waiting_.wait(false); }

  void pass() {
    if (!shut_) return;
    waiting_ = true;
    waiting_.notify_all();
    shut_.wait(true);
    waiting_ = false;
  }

 private:
  std::atomic<bool> shut_ = false;
  std::atomic<bool> waiting_ = false;
};

inline Gate& gate_of_tests() {
  static Gate gate;
  return gate;
}

// The op y = x, whose kernel passes through the gate.
struct Gated final : OpOf<Gated> {
  std::string_view name() const override { return "gated_of_tests"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<Node> vjp(const VjpRequest& request) const override { return {request.grad_outputs[0]}; }
  void compute(const HostCall& call) const {
    gate_of_tests().pass();
    copy_bytes(call.inputs[0], call.outputs[0]);
  }
};

inline Node gated(Operand x) { return apply(std::make_shared<Gated>(), {x}); }

// Calls `action` in another thread. Calls `meanwhile` in this thread as soon as a kernel of the action waits
// at the gate.
template <class Action, class Meanwhile>
void while_running(const Action& action, const Meanwhile& meanwhile) {
  gate_of_tests().shut();
  std::thread thread(action);
  gate_of_tests().await_arrival();
  meanwhile();
  gate_of_tests().open();
  thread.join();
}

}  // namespace plexaura::testing
