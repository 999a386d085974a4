#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace plexaura::testing {

// Returns the text of the error of type E that `action` throws, or "" if it throws none. Other errors pass
// through.
template <class E, class F>
std::string error_text(F&& action) {
  try {
    std::forward<F>(action)();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

template <class F>
std::string user_error(F&& action) {
  return error_text<UserError>(std::forward<F>(action));
}

template <class F>
std::string device_error(F&& action) {
  return error_text<DeviceError>(std::forward<F>(action));
}

inline bool contains(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

}  // namespace plexaura::testing
