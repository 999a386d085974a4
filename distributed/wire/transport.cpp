#include "distributed/wire/transport.h"

#include <fmt/format.h>
#include <limits>

#include "core/base/error.h"

namespace plexaura {
namespace {

class LoneTransport final : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Request send(std::span<const std::byte>, int, int) override { nobody(); }
  Request receive(std::span<std::byte>, int, int) override { nobody(); }
  bool done(Request&) override { nobody(); }
  void keep(const Request&, std::shared_ptr<const void>) override { nobody(); }
  std::optional<Envelope> waiting(int, int) override { return std::nullopt; }
  std::unique_ptr<Transport> duplicate() override { return make_lone_transport(); }
  std::unique_ptr<Transport> split(int) override { return make_lone_transport(); }
  std::unique_ptr<Transport> without(std::span<const int>, double) override { nobody(); }
  void all_reduce(DType, std::byte*, std::int64_t) override {}
  void abandon() noexcept override {}
  bool abandoned() const noexcept override { return false; }

 private:
  [[noreturn]] static void nobody() {
    throw InternalError("a program of one rank tried to exchange a message");
  }
};

}  // namespace

Transport::~Transport() = default;

// Throws if the message is too long, since MPI counts bytes in an int.
void Transport::check_length(std::size_t bytes) {
  if (bytes <= static_cast<std::size_t>(std::numeric_limits<int>::max())) return;
  throw UserError(
      fmt::format("a message of {} bytes is too long for MPI: send it in pieces below 2 GiB", bytes));
}

std::unique_ptr<Transport> make_lone_transport() { return std::make_unique<LoneTransport>(); }

}  // namespace plexaura
