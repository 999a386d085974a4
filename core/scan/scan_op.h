#pragma once

#include <memory>
#include <vector>

#include "core/base/export.h"
#include "core/graph/op.h"
#include "core/graph/subgraph.h"

namespace plexaura {

// The roles of the operands and the outputs of a scan's body.
struct ScanForm {
  std::int64_t steps = 0;
  // Number of carries. The first operands of a step are the first outputs of the step before.
  std::size_t carries = 0;
  // Number of operands after the carries; each step gets one element of them, along axis 0.
  std::size_t stacked = 0;
  std::size_t saved = 0;  // number of the last outputs, which only the gradient reads
  bool reverse = false;
  bool recompute = false;
};

// The op of scan(). The operands of the body are carries, stacked operands, and operands that are the same in each step;
// the op has an input for each of them. Its outputs are the carries after the last step, followed by all other outputs of
// the body, stacked. The last of its unsaved outputs are the carries before each step.
//
// The gradient of a scan that saves values holds two bodies. `whole` reads no saved value and computes all of
// them again. `body`, which is run, is a part of `whole`: it has further stacked operands for the saved
// values.
class PLEXAURA_API Scan final : public Op {
 public:
  Scan(ScanForm form, std::shared_ptr<const Subgraph> body, std::shared_ptr<const Subgraph> whole = nullptr);

  const ScanForm& form() const { return form_; }
  const Subgraph& body() const { return *body_; }
  const Subgraph& whole() const { return is_cut() ? *whole_ : *body_; }
  bool is_cut() const { return whole_ != nullptr; }
  bool is_stacked(std::size_t operand) const;
  std::size_t outputs() const { return body_->outputs().size(); }
  // Returns the number of the output with the values of a carry before each step.
  std::size_t carry_before(std::size_t carry) const {
    return outputs() - form_.saved - form_.carries + carry;
  }

  std::string_view name() const override { return "scan"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  Description description() const override;
  OpTraits traits() const override { return traits_; }

 private:
  ScanForm form_;
  std::shared_ptr<const Subgraph> body_;
  std::shared_ptr<const Subgraph> whole_;
  OpTraits traits_;
};

// Returns a scan that saves all values that ops of the body compute, unless `form` says that its gradient computes them
// again. `body` has the outputs that are not saved.
PLEXAURA_API std::shared_ptr<const Scan> make_scan(ScanForm form, const Subgraph& body);

// Returns the op as a Scan, or null if it is another op.
PLEXAURA_API const Scan* as_scan(const Op& op);

// Return the type of one element along axis 0, and the type of `steps` stacked elements.
PLEXAURA_API TensorType element_of(const TensorType& stacked);
PLEXAURA_API TensorType stacked(const TensorType& element, std::int64_t steps);

}  // namespace plexaura
