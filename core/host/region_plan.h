#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// A plan for host kernels to compute a region's nodes one after another: the conversions to row-major, the
// calls of kernels, and the conversions back. It has no addresses, so all launches share it.
struct RegionPlan {
  enum class Space : std::uint8_t { nowhere, input, output, workspace };

  // A place of a value: the index of an input or output of the region, or an offset in the workspace.
  struct Spot {
    Space space = Space::nowhere;
    std::size_t at = 0;
  };

  struct Conversion {
    Spot src;
    Layout from;
    Spot dst;
    Layout to;
    TensorType type;
  };

  struct Call {
    std::shared_ptr<const Op> op;
    HostKernel kernel;
    std::vector<Spot> inputs;  // all operands are row-major
    std::vector<Spot> outputs;
    std::vector<TensorType> input_types;
    std::vector<TensorType> output_types;
  };

  std::vector<Conversion> before;
  std::vector<Call> calls;
  std::vector<Conversion> after;
  std::size_t workspace = 0;  // bytes of the workspace
};

// Makes a plan for a reorder, or for a region of ops that have host kernels. `inputs` and `outputs` are the
// layouts of the region's inputs and outputs.
PLEXAURA_API RegionPlan plan_region(const RegionQuery& query, const std::vector<Layout>& inputs,
                                    const std::vector<Layout>& outputs);

}  // namespace plexaura
