#pragma once

#include <string_view>

#include "core/base/export.h"
#include "core/params/parameter_store.h"

namespace plexaura {

// Whether all of the name fits the pattern, in which * stands for any letters, dots too, or none, ? for one, and
// every other letter for itself: "layer1.*".
PLEXAURA_API bool is_named_like(std::string_view name, std::string_view pattern);
// By its name or an alias.
PLEXAURA_API bool is_named_like(const ParameterSpec& spec, std::string_view pattern);

}  // namespace plexaura
