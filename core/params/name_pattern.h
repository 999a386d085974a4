#pragma once

#include <string_view>

#include "core/base/export.h"
#include "core/params/parameter_store.h"

namespace plexaura {

// True if the whole name matches the pattern, for example "layer1.*". * matches any number of letters,
// including dots and none at all; ? matches one letter; every other letter matches itself.
PLEXAURA_API bool is_named_like(std::string_view name, std::string_view pattern);
// True if the name or an alias matches.
PLEXAURA_API bool is_named_like(const ParameterSpec& spec, std::string_view pattern);

}  // namespace plexaura
