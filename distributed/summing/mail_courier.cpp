#include "distributed/summing/mail_courier.h"

#include <exception>
#include <utility>

namespace plexaura {

namespace {

constexpr int reader = 0;  // number of the rank that reads the samples and sends them
// The largest number of parcels that arrive before they are taken. With two, one step can arrive while the
// step before waits to be taken. If a rank falls behind and all its data was read ahead, as in validation,
// the rest waits on rank 0 in the mailbox.
constexpr std::int64_t most_parcels_arriving = 2;
constexpr double seconds_between_looks = 0.1;

int tag_of(Courier::Stream stream) { return static_cast<int>(stream); }

}  // namespace

MailCourier::MailCourier(std::unique_ptr<Mailbox> mailbox)
    : mailbox_(std::move(mailbox)),
      driver_(*mailbox_, {tag_of(Stream::training), tag_of(Stream::validation)}, most_parcels_arriving) {}

void MailCourier::send(Stream stream, int to, std::span<const std::byte> parcel) {
  const auto lock = driver_.hold();
  const int tag = tag_of(stream);
  const double deadline = patience(stream);
  for (const Wait wait(deadline); !gone_.contains(to) && mailbox_->post(to, tag, parcel) == Posted::full;) {
    if (const auto letter = mailbox_->take(tag, seconds_between_looks)) gone_.insert(letter->from);
    if (wait.expired()) mailbox_->give_up(deadline, "room for samples");
  }
}

std::optional<std::vector<std::byte>> MailCourier::receive(Stream stream, std::string_view what) {
  const auto lock = driver_.hold();
  const double deadline = patience(stream);
  std::optional<Letter> letter = mailbox_->take_from_living(tag_of(stream), deadline, what);
  if (!letter) mailbox_->give_up(deadline, what);
  if (letter->bytes.empty()) return std::nullopt;
  return std::move(letter->bytes);
}

void MailCourier::close(Stream stream, bool in_error) noexcept {
  const int tag = tag_of(stream);
  try {
    const auto lock = driver_.hold();
    if (mailbox_->rank() == reader)
      for (int to = 0; to < mailbox_->size(); ++to) {
        if (to != reader) mailbox_->post(to, tag, {});
      }
    else if (in_error)
      mailbox_->post(reader, tag, {});
    else
      drop_rest(stream);
  } catch (const std::exception&) {
    // The error is ignored: the run is ending with another error, or the next wait for a lost rank reports it.
  }
}

// Drops letters up to the one that closes the stream. If rank 0 does not send it, the next wait for rank 0
// reports that.
void MailCourier::drop_rest(Stream stream) {
  for (Wait wait(patience(stream)); !wait.expired() && !mailbox_->is_lost(reader);) {
    const auto letter = mailbox_->take(tag_of(stream), seconds_between_looks);
    if (letter && letter->bytes.empty()) return;
    if (letter) wait.progressed();
  }
}

// Returns the seconds to wait for a parcel. In validation a rank may take long for its share: see
// training/ranks/on_rank_0.h. While this rank waits, a thread of it shows the other ranks that it works. That
// thread also finds ranks that are lost or hang, and then ends all waits.
double MailCourier::patience(Stream stream) const {
  constexpr double years = 1e9;
  return stream == Stream::validation ? years : mailbox_->deadline_seconds();
}

}  // namespace plexaura
