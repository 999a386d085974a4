#include "distributed/announcement.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/fnv.h"

namespace plexaura {
namespace {

std::string describe_call(const Announcement& a) {
  switch (a.call) {
    case Call::barrier:
      return "barrier";
    case Call::sum:
      return fmt::format("sum of {} {}", a.count, name_of(a.dtype));
    case Call::sum_window:
      return fmt::format("sum of {} {} at byte {} of a window", a.count, name_of(a.dtype), a.place);
    case Call::broadcast:
      return fmt::format("broadcast of {} bytes from rank {}", a.count, a.place);
    case Call::gather:
      return "gathering of texts";
    case Call::allocate:
      return fmt::format("shared window of {} bytes", a.count);
    case Call::send:
      return fmt::format("message of {} bytes to rank {}", a.count, a.place);
    case Call::receive:
      return fmt::format("message of {} bytes from rank {}", a.count, a.place);
    case Call::duplicate:
      return "duplicate of the communicator";
    case Call::split:
      return "split of the communicator";
    case Call::leave:
      return "the end of its work";
    case Call::leave_in_error:
      return "an error of its own";
  }
  return "an unknown call";
}

}  // namespace

Announcement announce(Call call, std::string_view what, DType dtype, std::int64_t count, std::int64_t place) {
  Announcement made;
  made.call = call;
  made.dtype = dtype;
  made.count = count;
  made.place = place;
  made.what_hash = fnv(what);
  std::copy_n(what.begin(), std::min(what.size(), made.what.size() - 1), made.what.begin());
  return made;
}

bool leaves(const Announcement& announcement) {
  return announcement.call == Call::leave || announcement.call == Call::leave_in_error;
}

bool match(const Announcement& a, const Announcement& b) {
  if (leaves(a) || leaves(b)) return leaves(a) && leaves(b);
  return a.sequence == b.sequence && a.call == b.call && a.dtype == b.dtype && a.count == b.count &&
         a.place == b.place && a.what_hash == b.what_hash;
}

std::string describe(const Announcement& announcement) {
  if (leaves(announcement)) return describe_call(announcement);
  return fmt::format("'{}' ({})", announcement.phrase(), describe_call(announcement));
}

std::string describe_mismatch(int rank_a, const Announcement& a, int rank_b, const Announcement& b) {
  return fmt::format(
      "rank {} is at {} while rank {} is at {}: all ranks must make the same calls in the same order", rank_a,
      describe(a), rank_b, describe(b));
}

}  // namespace plexaura
