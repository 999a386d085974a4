#include "core/vm/instruction_error.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

void rethrow_as_of(const Instruction& instruction) {
  try {
    throw;
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", instruction.name, error.what()));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw DeviceError(fmt::format("{}: {}", instruction.name, error.what()));
  }
}

}  // namespace plexaura
