#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/weights_immigration.h"

namespace plexaura {

// The form in which weights travel between jobs: each parameter row-major, whatever layout its job has
// chosen. Trainable parameters come first, then buffers, then frozen parameters, each kind in the order of
// names.
class LogicalWeights {
 public:
  // Take all parameters of a model; only name, type and role of a spec matter. Throw UserError for a type
  // other than float64 and float32, and for a model without parameters.
  explicit LogicalWeights(std::vector<ParameterSpec> specs);
  explicit LogicalWeights(const WeightsImmigration& border);

  DType dtype() const { return dtype_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t shared_bytes() const { return shared_bytes_; }  // bytes of trainable parameters and buffers
  std::size_t trainables() const { return trainables_; }      // number of elements of trainable parameters

  // read() copies parameters from `from` to `weights`, and write() passes the parameters in `weights` to `to`. Both
  // process as many parameters as `weights` holds: all of them, or the shared ones.
  using Read = std::function<Tensor(std::string_view name)>;
  void read(const Read& from, std::span<std::byte> weights) const;
  using Write = std::function<void(std::string_view name, const Tensor& value)>;
  void write(std::span<const std::byte> weights, const Write& to) const;

  // Returns the facts that must be equal in two jobs: type and role of each parameter.
  std::map<std::string, std::string> facts() const;

 private:
  std::vector<ParameterSpec> specs_;
  DType dtype_;
  std::size_t bytes_ = 0;
  std::size_t shared_bytes_ = 0;
  std::size_t trainables_ = 0;
};

}  // namespace plexaura
