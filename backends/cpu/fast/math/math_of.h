#pragma once

#include <type_traits>

#include "backends/cpu/fast/math/double_math.h"
#include "backends/cpu/fast/math/vector_math.h"

namespace plexaura::fast {

// The vectorised functions of a type: float or double.
template <class T>
using MathOf = std::conditional_t<std::is_same_v<T, double>, DoubleMath, VectorMath>;

}  // namespace plexaura::fast
