#include "app/described_step.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>
#include <vector>

#include "app/report/report.h"
#include "core/base/error.h"

namespace plexaura {

namespace {

struct WorkSum {
  std::size_t calls = 0;
  double bytes = 0;
  double operations = 0;
  double seconds = 0;

  void add(const EnqueuedCall& call) {
    ++calls;
    bytes += call.bytes;
    operations += call.operations;
    seconds += call.seconds;
  }
};

const char* name_of_kind(EnqueuedCall::Kind kind) {
  switch (kind) {
    case EnqueuedCall::Kind::kernel:
      return "kernel";
    case EnqueuedCall::Kind::library:
      return "library";
    default:
      return "copy";
  }
}

std::string row_of(const WorkSum& sum, std::string_view kind, std::string_view what) {
  return fmt::format("{:6} {:9.3f} {:10.1f} {:9.3f}  {:7}  {}\n", sum.calls, sum.bytes / 1e9,
                     sum.operations / 1e9, sum.seconds * 1e3, kind, what);
}

}  // namespace

UnreadSamples::UnreadSamples(std::int64_t size, const Shape& sample)
    : size_(size), fields_{{"samples", {DType::uint8, sample}}, {"labels", {DType::int64, {}}}} {}

void UnreadSamples::read_fields(std::int64_t, const SampleContext&,
                                std::span<const std::span<std::byte>>) const {
  throw InternalError("a sample of a step that is only described was read");
}

// Returns the work of one step. Makes two steps before it counts, so that programs are already recorded for
// both of their input slots.
WorkAccount account_of_step(DescribedBackend& device, Trainer& trainer) {
  device.begin_account();
  for (int slot = 0; slot < 2; ++slot) trainer.step_on_zeros();
  device.end_account();
  device.begin_account();
  trainer.step_on_zeros();
  return device.end_account();
}

std::string text_of(const WorkAccount& account, const DescribedBackend& device, std::int64_t samples) {
  std::map<std::pair<EnqueuedCall::Kind, std::string>, WorkSum> by_kind;
  WorkSum all;
  std::size_t recorded = 0;
  for (const EnqueuedCall& call : account.calls) {
    by_kind[{call.kind, call.what}].add(call);
    all.add(call);
    recorded += call.recorded ? 1 : 0;
  }
  std::vector<std::pair<std::pair<EnqueuedCall::Kind, std::string>, WorkSum>> rows(by_kind.begin(),
                                                                                   by_kind.end());
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const auto& entry) { return entry.second.seconds; });
  std::string text = fmt::format("device       {}: {}\n", device.info().description, device.speeds());
  text +=
      fmt::format("in use       {} of its {}\n", bytes_text(static_cast<double>(device.most_bytes_used())),
                  bytes_text(static_cast<double>(device.memory_bytes())));
  text +=
      fmt::format("step         {} graph {} with {} calls, {} calls beside\n", account.replays,
                  account.replays == 1 ? "launch" : "launches", recorded, account.calls.size() - recorded);
  text += " calls        GB      GFLOP        ms  by       what\n";
  for (const auto& [kind, sum] : rows) text += row_of(sum, name_of_kind(kind.first), kind.second);
  text += row_of(all, "", "in all");
  text += fmt::format("roofline     {:.4g} ms a step of {} samples, {:.0f} samples/s at most\n",
                      all.seconds * 1e3, samples, static_cast<double>(samples) / all.seconds);
  text += fmt::format(
      "side by side {:.4g} ms, if kernels that run at the same time do not slow each other down\n",
      account.seconds_of_chains * 1e3);
  return text;
}

}  // namespace plexaura
