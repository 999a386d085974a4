#include "core/exchange/collective.h"

#include <fmt/format.h>
#include <new>
#include <utility>

namespace plexaura {
namespace {

// Encodes an error as a letter for its kind and its text. Without an error the result is empty.
std::string encode(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const UserError& user) {
    return std::string("U") + user.what();
  } catch (const DeviceError& device) {
    return std::string("D") + device.what();
  } catch (const std::bad_alloc&) {
    return "Dout of memory";
  } catch (const std::exception& other) {
    return std::string("I") + other.what();
  } catch (...) {
    return "Ian exception of unknown type was thrown; throw one that derives from std::exception";
  }
}

// A program catches a std::exception and reports it, so another exception becomes one.
[[noreturn]] void rethrow(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception&) {
    throw;
  } catch (...) {
    throw InternalError(
        "an exception of unknown type was thrown; throw one that derives from std::exception");
  }
}

std::vector<std::string> gather_errors(Collective& collective, const std::exception_ptr& mine,
                                       std::string_view what) {
  try {
    return collective.gather_all(encode(mine), what);
  } catch (const std::exception&) {
    // If this rank has an error, it is often an error of the collective itself, which then refuses this call
    // as well.
    if (mine) rethrow(mine);
    throw;
  }
}

[[noreturn]] void throw_remote(int rank, const std::string& encoded) {
  const std::string text = fmt::format("rank {}: {}", rank, encoded.substr(1));
  switch (encoded.front()) {
    case 'U':
      throw Remote<UserError>(rank, text);
    case 'D':
      throw Remote<DeviceError>(rank, text);
    default:
      throw Remote<InternalError>(rank, text);
  }
}

}  // namespace

Collective::~Collective() = default;

void Collective::bring_to_0(std::byte* data, std::size_t bytes, int from, std::string_view what) {
  std::vector<std::byte> unwanted(rank() == 0 || rank() == from ? 0 : bytes);
  broadcast(unwanted.empty() ? data : unwanted.data(), bytes, from, what);
}
RemoteError::~RemoteError() = default;

namespace {

thread_local std::string_view phase_under_way;

}  // namespace

PhaseMark::PhaseMark(std::string_view what)
    : span_(EventKind::phase, what), outer_(std::exchange(phase_under_way, what)) {}
PhaseMark::~PhaseMark() { phase_under_way = outer_; }

void refuse_in_phase(std::string_view what) {
  if (phase_under_way.data() == nullptr) return;
  throw InternalError(
      fmt::format("the call '{}' of all ranks is made in the phase '{}', which some ranks may have left",
                  what, phase_under_way));
}

bool speaks(const std::exception& error) noexcept {
  return dynamic_cast<const RemoteError*>(&error) == nullptr;
}

void agree_on_error(Collective& collective, const std::exception_ptr& mine, std::string_view what) {
  const std::vector<std::string> errors = gather_errors(collective, mine, what);
  for (int rank = 0; rank < static_cast<int>(errors.size()); ++rank) {
    if (errors[static_cast<std::size_t>(rank)].empty()) continue;
    if (rank == collective.rank()) rethrow(mine);
    throw_remote(rank, errors[static_cast<std::size_t>(rank)]);
  }
}

}  // namespace plexaura
