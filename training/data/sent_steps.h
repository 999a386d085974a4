#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/exchange/courier.h"
#include "training/data/loader.h"

namespace plexaura {

// A stream of a courier, which is closed when this goes, whatever has happened.
class SampleStream {
 public:
  // `courier`: null where each rank reads its own samples.
  SampleStream(Courier* courier, Courier::Stream stream) : courier_(courier), stream_(stream) {}
  ~SampleStream();
  SampleStream(const SampleStream&) = delete;
  SampleStream& operator=(const SampleStream&) = delete;

  bool has_courier() const { return courier_ != nullptr; }
  // See Courier.
  void send(int to, std::span<const std::byte> parcel) { courier_->send(stream_, to, parcel); }
  std::optional<std::vector<std::byte>> receive(std::string_view what);
  // On rank 0.
  void close();

 private:
  Courier* courier_;
  Courier::Stream stream_;
  bool closed_ = false;
  int exceptions_at_start_ = std::uncaught_exceptions();
};

// The steps of this rank: from a Loader where the stream has no courier. Else rank 0 reads the parts of all ranks, a step
// ahead of its own, and sends them; on another rank `samples` says what they are like, and none is read. Where rank 0
// cannot read a sample next() throws on all ranks in the same step, and it is rank 0 that knows why. The
// stream outlives what this gives.
std::unique_ptr<StepSource> make_steps(std::shared_ptr<const SampleSource> samples,
                                       const LoaderOptions& options, SampleStream& stream);

}  // namespace plexaura
