#include "core/graph/origin.h"

#include <fmt/format.h>

namespace plexaura {

Origin Origin::at(std::source_location where) { return {where.file_name(), where.line(), 0, {}, false, {}}; }

std::string to_string(const Origin& origin) {
  std::string text = origin.is_gradient ? "gradient of " : "";
  text += origin.file;
  if (origin.line != 0) text += fmt::format(":{}", origin.line);
  if (origin.column != 0) text += fmt::format(":{}", origin.column);
  if (!origin.scope.empty()) text += fmt::format(" ({})", origin.scope);
  if (origin.caller)
    text += fmt::format(", called from {}:{}", origin.caller->file_name(), origin.caller->line());
  return text;
}

}  // namespace plexaura
