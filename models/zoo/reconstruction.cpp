#include "models/zoo/reconstruction.h"

#include <cmath>

#include "core/ops/binary.h"
#include "core/ops/element_losses.h"
#include "core/ops/losses.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "models/zoo/regression.h"

namespace plexaura {

LossOutputs build_reconstruction(const Model& model, Operand outputs, Operand images) {
  const DType dtype = outputs.node().dtype();
  const auto count = static_cast<double>(model.classes());
  const std::vector<std::int64_t> rows{outputs.node().shape()[0], model.classes()};
  const Node out = reshape(outputs, rows);
  const Node values = reshape(images, rows);
  const Node wanted = values.dtype() == DType::uint8 ? cast(values, dtype) / 255 : values;
  const bool has_sigmoid = model.info().loss == Loss::binary_cross_entropy;
  const Node error = cast(has_sigmoid ? sigmoid(out) : out, DType::float64) - cast(wanted, DType::float64);
  return {.loss = has_sigmoid ? binary_cross_entropy_with_logits(out, wanted) / count
                              : regression_loss(model.info().loss, out, wanted),
          .validation = {.sums = sum(square(error)),
                         .values = [count](std::span<const double> totals, double all) {
                           const double mean = totals[0] / (all * count);
                           return std::vector<std::pair<std::string, double>>{
                               {"rmse", std::sqrt(mean)}, {"psnr", -10 * std::log10(mean)}};
                         }}};
}

}  // namespace plexaura
