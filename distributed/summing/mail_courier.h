#pragma once

#include <memory>
#include <set>

#include "core/exchange/courier.h"
#include "distributed/communicator/mail_driver.h"

namespace plexaura {

// The courier over a mailbox: a parcel is a letter, and an empty letter closes a stream. A thread drives the
// letters while the training thread computes.
class MailCourier final : public Courier {
 public:
  explicit MailCourier(std::unique_ptr<Mailbox> mailbox);

  void send(Stream stream, int to, std::span<const std::byte> parcel) override;
  std::optional<std::vector<std::byte>> receive(Stream stream, std::string_view what) override;
  void close(Stream stream, bool in_error) noexcept override;

 private:
  void drop_rest(Stream stream);
  double patience(Stream stream) const;

  std::unique_ptr<Mailbox> mailbox_;
  std::set<int> gone_;  // ranks to which no more parcels can be sent
  MailDriver driver_;
};

}  // namespace plexaura
