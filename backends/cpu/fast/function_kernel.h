#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "backends/regions/region_match.h"
#include "core/device/backend.h"

namespace plexaura::fast {

// A kernel that calls one function with the addresses of its operands.
class FunctionKernel final : public Kernel {
 public:
  using Function = std::function<void(const Binding&)>;
  FunctionKernel(Function function, std::size_t workspace)
      : function_(std::make_shared<const Function>(std::move(function))), workspace_(workspace) {}

  std::size_t workspace() const override { return workspace_; }
  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    return std::make_unique<FunctionLaunch>(function_, binding);
  }

 private:
  class FunctionLaunch final : public Launch {
   public:
    FunctionLaunch(std::shared_ptr<const Function> function, Binding binding)
        : function_(std::move(function)), binding_(std::move(binding)) {}
    void run() override { (*function_)(binding_); }

   private:
    std::shared_ptr<const Function> function_;
    Binding binding_;
  };

  std::shared_ptr<const Function> function_;
  std::size_t workspace_;
};

// `workspace` is in bytes.
inline std::shared_ptr<const Kernel> make_kernel(FunctionKernel::Function function,
                                                 std::size_t workspace = 0) {
  return std::make_shared<FunctionKernel>(std::move(function), workspace);
}

// Returns a candidate with row-major operands and the time of its memory traffic as estimate. The caller must
// set `make`.
inline Candidate row_major_candidate(const RegionQuery& query) {
  Candidate candidate;
  candidate.implementation = "fast";
  for (const Value value : query.region.inputs)
    candidate.inputs.push_back(Layout::row_major(query.type(value).shape.rank()));
  for (const Value value : query.region.outputs)
    candidate.outputs.push_back(Layout::row_major(query.type(value).shape.rank()));
  candidate.seconds = seconds_of_traffic(query, candidate);
  return candidate;
}

// Returns row_major_candidate() with the kernel that `make` makes of the query, if the result is float32 and
// not empty; otherwise nothing.
template <class Make>
std::vector<Candidate> row_major_floats(const RegionQuery& query, Make make) {
  const Value result = query.region.outputs[0];
  if (!is_float32(query.graph, result) || !has_elements(query.graph, result)) return {};
  Candidate candidate = row_major_candidate(query);
  candidate.make = [query, make] { return make(query); };
  return {std::move(candidate)};
}

template <class T>
T* elements(Address address) {
  return reinterpret_cast<T*>(address);
}

inline float* floats(Address address) { return elements<float>(address); }

}  // namespace plexaura::fast
