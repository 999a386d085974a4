#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// labels int64 [...] -> [..., classes]: 1 at the label, 0 elsewhere; all 0 for a label out of range. No
// gradient.
PLEXAURA_API Node one_hot(Operand labels, std::int64_t classes, DType dtype);

// The number of samples whose label is among the k largest logits, as a scalar of the logits' dtype. No
// gradient.
//   logits [N, C], floating; labels int64 [N].
// Among equal logits the one of the lower class comes first, so that exactly k classes are among the k largest, and
// a network with the same output for all classes scores k / C. NaN counts as larger than any number, but a
// label with the logit NaN is never counted, nor is a label out of range.
PLEXAURA_API Node top_k_correct(Operand logits, Operand labels, std::int64_t k = 1);

struct OneHotOptions {
  std::int64_t classes = 0;
  DType dtype = DType::float32;

  static void fields(auto& self, auto& visitor) {
    visitor("classes", self.classes);
    visitor("dtype", self.dtype);
  }
};

class PLEXAURA_API OneHot final : public OpOf<OneHot, OneHotOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "one_hot"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest&) const override { return {Node()}; }
  void compute(const HostCall& call) const;
};

struct TopKCorrectOptions {
  std::int64_t k = 1;

  static void fields(auto& self, auto& visitor) { visitor("k", self.k); }
};

class PLEXAURA_API TopKCorrect final : public OpOf<TopKCorrect, TopKCorrectOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "top_k_correct"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest&) const override { return {Node(), Node()}; }
  void compute(const HostCall& call) const;
};

// Throws RuleError unless logits are floating [N, C] and labels int64 [N].
void require_logits_and_labels(const TensorType& logits, const TensorType& labels);

}  // namespace plexaura
