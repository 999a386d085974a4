#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"
#include "core/tensor/layout.h"

namespace plexaura {

struct ReorderOptions {
  Layout to;

  // Writes the layout as text. It cannot be read back, because a layout cannot be parsed from text.
  static void fields(auto& self, auto& visitor) { visitor("to", to_string(self.to)); }
};

// Converts a value to another physical layout. compile() adds it to a program where the layouts of two
// kernels differ, and where a value is copied to its place in the parameter store. Users never see one, so it
// has no builder, no gradient and no line in ops.def.
//
// A backend offers at least one candidate for it. A candidate's inputs[0] is the layout in RegionQuery::given, or the
// target if none is given. Its outputs[0] is to().
class PLEXAURA_API Reorder final : public OpWith<ReorderOptions> {
 public:
  explicit Reorder(Layout to) : OpWith({std::move(to)}) {}

  std::string_view name() const override { return "reorder"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  const Layout& to() const { return options().to; }
};

}  // namespace plexaura
