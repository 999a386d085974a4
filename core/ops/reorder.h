#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"
#include "core/tensor/layout.h"

namespace plexaura {

struct ReorderOptions {
  Layout to;

  // Written only: no layout is made of a text.
  static void fields(auto& self, auto& visitor) { visitor("to", to_string(self.to)); }
};

// The same value in another physical layout: put into a program by compile where the layouts of two kernels
// differ, and where a value is copied to its home in the parameter store. Users never see one, so it
// has no builder, no gradient and no line in ops.def.
//
// A backend offers one candidate for it: inputs[0] is what RegionQuery::given says (the target where that is
// open), outputs[0] is to().
class PLEXAURA_API Reorder final : public OpWith<ReorderOptions> {
 public:
  explicit Reorder(Layout to) : OpWith({std::move(to)}) {}

  std::string_view name() const override { return "reorder"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  const Layout& to() const { return options().to; }
};

}  // namespace plexaura
