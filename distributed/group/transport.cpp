#include "distributed/group/transport.h"

#include "core/error.h"

namespace plexaura {
namespace {

class LoneTransport final : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Request send(std::span<const std::byte>, int, int) override { nobody(); }
  Request receive(std::span<std::byte>, int, int) override { nobody(); }
  bool done(Request&) override { nobody(); }
  std::optional<Envelope> waiting(int, int) override { return std::nullopt; }
  std::unique_ptr<Transport> duplicate() override { return make_lone_transport(); }
  std::unique_ptr<Transport> split(int) override { return make_lone_transport(); }
  void abandon() noexcept override {}
  bool abandoned() const noexcept override { return false; }

 private:
  [[noreturn]] static void nobody() {
    throw InternalError("a program of one rank tried to exchange a message");
  }
};

}  // namespace

Transport::~Transport() = default;

std::unique_ptr<Transport> make_lone_transport() { return std::make_unique<LoneTransport>(); }

}  // namespace plexaura
