#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// Ops of matrices, which are the last two axes of a value: a [..., N, N] has one matrix for each index of the other
// axes. Floating; 16-bit floats are computed in float32. A message names a matrix by its number in row-major order.

// The lower triangular L, with positive diagonal, for which L L^T = (a + a^T) / 2. A matrix that is not positive
// definite ends the run with a UserError that names it.
PLEXAURA_API Node cholesky(Operand a);

struct TriangularSolveOptions {
  bool upper = false;          // a is upper triangular, not lower
  bool transpose = false;      // solves with the transpose of a
  bool unit_diagonal = false;  // takes the diagonal of a as ones
  static void fields(auto& self, auto& visitor) {
    visitor("upper", self.upper);
    visitor("transpose", self.transpose);
    visitor("unit_diagonal", self.unit_diagonal);
  }
};

// The x for which a x = b, for triangular a [..., N, N] and b [..., N, M]. The elements on the other side of the
// diagonal of a are not read. The other axes broadcast. A 0 on the diagonal gives infinite values or NaN.
PLEXAURA_API Node triangular_solve(Operand a, Operand b, TriangularSolveOptions options = {});

// The x for which a x = b, for a [..., N, N] and b [..., N, M]. The other axes broadcast. A singular matrix ends the
// run with a UserError that names it.
PLEXAURA_API Node solve(Operand a, Operand b);

// The inverse of each matrix. To multiply by it, solve() is faster and more exact.
PLEXAURA_API Node inverse(Operand a);

// The determinant [...] of each matrix, and its logarithm, which is NaN if the determinant is negative and -infinity
// if it is 0. Computing the gradient of a singular matrix ends the run with the error of solve().
PLEXAURA_API Node det(Operand a);
PLEXAURA_API Node logdet(Operand a);

class PLEXAURA_API Cholesky final : public OpOf<Cholesky> {
 public:
  std::string_view name() const override { return "cholesky"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

// Inputs: a, and b with the same axes before the matrices.
class PLEXAURA_API TriangularSolve final : public OpOf<TriangularSolve, TriangularSolveOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "triangular_solve"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

// The factors of a [..., N, N] with rows exchanged: [..., N, N + 1]. Below the diagonal is L, whose diagonal is 1, and
// from the diagonal on U. Element i of the last column is the number of the row with which row i was exchanged, from
// the first row to the last. No gradient: the ops that read the factors also have a as an input, and return the whole
// gradient as that of a.
class PLEXAURA_API LuFactors final : public OpOf<LuFactors> {
 public:
  std::string_view name() const override { return "lu_factors"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest&) const override { return {Node()}; }
  void compute(const HostCall& call) const;
};

struct LuSolveOptions {
  bool transpose = false;  // solves with the transpose of a
  static void fields(auto& self, auto& visitor) { visitor("transpose", self.transpose); }
};

// Inputs: a, its factors, and b with the same axes before the matrices.
class PLEXAURA_API LuSolve final : public OpOf<LuSolve, LuSolveOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "lu_solve"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.unread_inputs = {0}}; }
};

struct LuDetOptions {
  bool logarithm = false;
  static void fields(auto& self, auto& visitor) { visitor("logarithm", self.logarithm); }
};

// Inputs: a and its factors.
class PLEXAURA_API LuDet final : public OpOf<LuDet, LuDetOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "lu_det"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.unread_inputs = {0}}; }
};

}  // namespace plexaura
