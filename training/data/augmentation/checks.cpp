#include <fmt/format.h>

#include "core/base/error.h"
#include "training/data/augmentation/operations.h"

namespace plexaura::augmentation {

double checked_probability(std::string_view operation, double p) {
  if (!(p >= 0 && p <= 1))
    throw UserError(fmt::format("{}: the probability is {}; give a number from 0 to 1", operation, p));
  return p;
}

std::int64_t checked_side(std::string_view operation, std::int64_t side) {
  constexpr std::int64_t most = 4096;
  if (side < 1 || side > most)
    throw UserError(fmt::format("{}: the size is {}; give 1 to {} pixels", operation, side, most));
  return side;
}

Span checked_span(std::string_view operation, std::string_view option, Span span, double least, double most) {
  if (!(span.low >= least && span.low <= span.high && span.high <= most))
    throw UserError(fmt::format("{}: {} is [{}, {}]; give two numbers from {} to {}, the smaller one first",
                                operation, option, span.low, span.high, least, most));
  return span;
}

}  // namespace plexaura::augmentation
