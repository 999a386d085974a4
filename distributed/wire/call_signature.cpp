#include "distributed/wire/call_signature.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/fnv.h"

namespace plexaura {
namespace {

std::string describe_call(const CallSignature& a) {
  switch (a.call) {
    case Call::barrier:
      return "barrier";
    case Call::sum:
      return fmt::format("sum of {} {}", a.count, name_of(a.dtype));
    case Call::sum_window:
      return fmt::format("sum of {} {} at byte {} of a window", a.count, name_of(a.dtype), a.place);
    case Call::reduce_scatter:
      return fmt::format("sum of {} {} in parts", a.count, name_of(a.dtype));
    case Call::all_gather:
      return fmt::format("gathering of {} {} from parts", a.count, name_of(a.dtype));
    case Call::all_to_all:
      return fmt::format("exchange of blocks of {} bytes", a.count);
    case Call::broadcast:
      return fmt::format("broadcast of {} bytes from rank {}", a.count, a.place);
    case Call::gather:
      return "gathering of texts";
    case Call::allocate:
      return fmt::format("shared window of {} bytes", a.count);
    case Call::send:
      return fmt::format("message of {} bytes to rank {}", a.count, a.place);
    case Call::receive:
      return a.place < 0 ? "a letter" : fmt::format("message of {} bytes from rank {}", a.count, a.place);
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

CallSignature announce(Call call, std::string_view what, DType dtype, std::int64_t count,
                       std::int64_t place) {
  CallSignature made;
  made.call = call;
  made.dtype = dtype;
  made.count = count;
  made.place = place;
  made.what_hash = fnv(what);
  std::copy_n(what.begin(), std::min(what.size(), made.what.size() - 1), made.what.begin());
  return made;
}

bool leaves(const CallSignature& signature) {
  return signature.call == Call::leave || signature.call == Call::leave_in_error;
}

bool match(const CallSignature& a, const CallSignature& b) {
  if (leaves(a) || leaves(b)) return leaves(a) && leaves(b);
  return a.sequence == b.sequence && a.call == b.call && a.dtype == b.dtype && a.count == b.count &&
         a.place == b.place && a.what_hash == b.what_hash;
}

std::string describe(const CallSignature& signature) {
  if (leaves(signature)) return describe_call(signature);
  return fmt::format("'{}' ({})", signature.phrase(), describe_call(signature));
}

std::string describe_mismatch(int rank_a, const CallSignature& a, int rank_b, const CallSignature& b) {
  return fmt::format(
      "rank {} is at {} while rank {} is at {}: all ranks must make the same calls in the same order", rank_a,
      describe(a), rank_b, describe(b));
}

}  // namespace plexaura
