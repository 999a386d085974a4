#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "core/params/courier.h"
#include "distributed/mailbox.h"

namespace plexaura {

// The courier over a mailbox: a parcel is a letter, and an empty letter closes a stream. Messages go on only while
// somebody calls the library that carries them, so that a thread does that as long as the thread that trains computes.
class MailCourier final : public Courier {
 public:
  explicit MailCourier(std::unique_ptr<Mailbox> mailbox);
  ~MailCourier() override;

  void send(Stream stream, int to, std::span<const std::byte> parcel) override;
  std::optional<std::vector<std::byte>> receive(Stream stream, std::string_view what) override;
  void close(Stream stream, bool in_error) noexcept override;

 private:
  void drive(const std::stop_token& stop);
  void drop_rest(int tag);

  std::unique_ptr<Mailbox> mailbox_;
  std::mutex mutex_;     // of the mailbox
  std::set<int> gone_;   // ranks that take no more parcels
  std::jthread driver_;  // goes first
};

}  // namespace plexaura
