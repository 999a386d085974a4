#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/error.h"
#include "core/tensor/dtype.h"

namespace plexaura {

// Calls f(std::type_identity<T>{}) with the C++ type of a dtype.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float64:
      return f(std::type_identity<double>{});
    case DType::float32:
      return f(std::type_identity<float>{});
    case DType::bfloat16:
      return f(std::type_identity<bfloat16>{});
    case DType::float16:
      return f(std::type_identity<float16>{});
    case DType::int64:
      return f(std::type_identity<std::int64_t>{});
    case DType::int32:
      return f(std::type_identity<std::int32_t>{});
    case DType::uint8:
      return f(std::type_identity<std::uint8_t>{});
    case DType::boolean:
      return f(std::type_identity<bool>{});
  }
  throw InternalError("dispatch: a dtype outside its enumeration");
}

}  // namespace plexaura
