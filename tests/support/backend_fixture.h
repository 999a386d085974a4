#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/backend.h"
#include "core/tensor/tensor.h"

namespace plexaura::testing {

// A value in a backend's memory.
class DeviceValue {
 public:
  DeviceValue(Backend& backend, TensorType type, Layout layout);
  DeviceValue(Backend& backend, const Tensor& value, Layout layout);

  Address address() const { return memory_->address(); }
  const Layout& layout() const { return layout_; }
  void write(const Tensor& value);
  Tensor read() const;  // waits for the backend
  // Fills the memory with bytes that no kernel computes.
  void spoil();
  // Returns the bytes in memory, padding included.
  std::vector<std::byte> read_bytes() const;

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(layout_.bytes(type_)); }

  Backend& backend_;
  TensorType type_;
  Layout layout_;
  std::unique_ptr<Memory> memory_;
};

// Runs one region of a graph with a kernel, its operands in device memory, like the VM does.
class RegionRun {
 public:
  struct Options {
    std::vector<std::pair<std::size_t, std::size_t>> in_place = {};  // pairs of output and input
    // layouts of the inputs; default: those of the candidate
    std::vector<std::optional<Layout>> given = {};
    std::string implementation = {};  // that of the candidate to run; empty: the first candidate
  };

  RegionRun(Backend& backend, const Graph& graph, Region region, const std::vector<Tensor>& inputs);
  RegionRun(Backend& backend, const Graph& graph, Region region, const std::vector<Tensor>& inputs,
            const Options& options);

  const Candidate& candidate() const { return candidate_; }
  DeviceValue& input(std::size_t index) { return *inputs_[index]; }
  DeviceValue& output(std::size_t index = 0) { return *outputs_[index]; }
  void launch() { launch_->run(); }  // runs or enqueues; does not wait

 private:
  Candidate candidate_;
  std::string name_;
  std::vector<std::shared_ptr<DeviceValue>> inputs_;
  std::vector<std::shared_ptr<DeviceValue>> outputs_;
  std::unique_ptr<Memory> workspace_;
  std::unique_ptr<Launch> launch_;
};

// Waits for everything that was enqueued on the stream. Throws the device's failure. For the compute stream there
// is plexaura::wait_for(backend).
void wait_for(Backend& backend, Stream stream);

// Returns numbers that are all different and exact in every floating dtype: 0.25, 0.5, ...
Tensor counting(const TensorType& type, double start = 0.25, double step = 0.25);

}  // namespace plexaura::testing
