#pragma once

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "core/tensor/tensor.h"

namespace plexaura::testing {

// Checks that results have NaNs and infinities where the expected ones have them, and that finite elements differ by at most
// `bound`, relative to the expected one if that is larger than 1.
inline void check_special_values(const std::vector<Tensor>& found, const std::vector<Tensor>& expected,
                                 double bound) {
  for (std::size_t output = 0; output < found.size(); ++output) {
    const std::vector<double> own = found[output].to_doubles();
    const std::vector<double> wanted = expected[output].to_doubles();
    REQUIRE(own.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CAPTURE(output);
      CAPTURE(i);
      CHECK(std::isnan(own[i]) == std::isnan(wanted[i]));
      CHECK(std::isinf(own[i]) == std::isinf(wanted[i]));
      if (std::isfinite(wanted[i]))
        CHECK(std::abs(own[i] - wanted[i]) <= bound * std::max(1., std::abs(wanted[i])));
    }
  }
}

}  // namespace plexaura::testing
