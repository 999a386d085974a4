#pragma once

#include "core/export.h"
#include "core/graph/op.h"
#include "core/tensor/layout.h"

namespace plexaura {

// The same value in another physical layout: put into a program by compile where the layouts of two kernels
// differ, and where a value is copied or added to its home in the parameter store. Users never see one, so it
// has no builder, no gradient and no line in ops.def.
//
// A backend offers one candidate for it: inputs[0] is what RegionQuery::given says (the target where that is
// open), outputs[0] is to(). With RegionQuery::accumulate the elements, padding included, are added to the
// output.
class PLEXAURA_API Reorder final : public Op {
 public:
  explicit Reorder(Layout to) : to_(std::move(to)) {}

  std::string_view name() const override { return "reorder"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  void describe(Description& description) const override { description.add("to", to_string(to_)); }
  const Layout& to() const { return to_; }

 private:
  Layout to_;
};

}  // namespace plexaura
