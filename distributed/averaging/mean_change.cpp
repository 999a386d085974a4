#include "distributed/averaging/mean_change.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <sstream>
#include <system_error>

#include "core/base/error.h"
#include "core/base/events.h"
#include "distributed/exchange/arena_state.h"
#include "distributed/node/reduce.h"

namespace plexaura {

namespace {

constexpr std::string_view clock_name = "clock";
constexpr std::string_view steps_name = "steps";
constexpr std::string_view samples_name = "samples";
constexpr std::string_view taken_name = "means";
constexpr std::string_view exchange_name = "exchange";
constexpr std::string_view brought_name = "brought";
constexpr std::string_view mean_prefix = "mean.";
constexpr std::string_view moved_prefix = "moved.";

std::int64_t trainable_elements(const Placement& placement) {
  std::int64_t elements = 0;
  for (const Placement::Entry& entry : placement.entries)
    if (entry.role == ParameterRole::trainable) elements += entry.type.shape.elements();
  return elements;
}

Tensor to_tensor(const std::vector<std::int64_t>& numbers) {
  return Tensor::of<std::int64_t>(Shape{std::ssize(numbers)}, numbers);
}

// Returns the smallest number of counts that a part of the state with this name has; 0 if it is no part with
// counts.
std::size_t least_counts(std::string_view name) {
  if (name == exchange_name) return 4;
  if (name == brought_name) return 3;
  return name == taken_name || name == clock_name || name == steps_name || name == samples_name ? 1 : 0;
}

[[noreturn]] void fail_damaged(std::string_view name) {
  throw UserError(fmt::format(
      "the part '{}' of the strategy's state in the checkpoint contains numbers that no run writes; the "
      "checkpoint is damaged: resume from another copy",
      name));
}

std::span<const std::int64_t> counts_of(const StrategyState& part, std::size_t least) {
  const bool holds =
      part.value.dtype() == DType::int64 && std::cmp_greater_equal(part.value.elements(), least);
  if (!holds ||
      std::ranges::any_of(part.value.as<std::int64_t>(), [](std::int64_t count) { return count < 0; }))
    fail_damaged(part.name);
  return part.value.as<std::int64_t>();
}

}  // namespace

MeanChange::MeanChange(Collective& ranks, const MeanOptions& options,
                       std::unique_ptr<Compression> compression)
    : ranks_(ranks),
      options_(options),
      sum_(ranks, std::move(compression), options.owes_what_stays),
      meter_(ranks) {
  if (options_.delay == 0) return;
  try {
    thread_ = std::make_unique<ExchangeThread>(
        [this](std::size_t) { with_elements(dtype(), [&]<class T>(T) { exchange<T>(); }); });
  } catch (const std::system_error& error) {
    throw DeviceError(fmt::format(
        "cannot start the thread that exchanges weights: {}; set distributed.delay to 0", error.what()));
  }
}

void MeanChange::begin(WeightsImmigration& border) {
  const Placement& placement = border.placement();
  const DType dtype = placement.dtype(ArenaKind::value);
  check_summable(dtype);
  border_ = &border;
  is_first_ = ranks_.rank() == 0;
  fragments_ = cut(placement);
  std::vector<Bucket> slices;
  for (const Fragment& fragment : fragments_) slices.push_back(fragment.trainables);
  sum_.begin(placement, slices);
  const Bucket& last = fragments_.back().slice;
  anchor_ = Tensor({dtype, Shape{last.offset + last.count}});
  anchor_ = copy_values();
  changes_ = Tensor(anchor_.type());
  own_ = Tensor({dtype, Shape{options_.delay > 0 ? anchor_.elements() : 0}});
  taken_ = clock_ = 0;
  exchange_.reset();
}

// Cuts the parameters into fragments. Each parameter belongs to one fragment, whatever its layout. If a large
// parameter leaves none for another fragment, there are fewer fragments.
std::vector<MeanChange::Fragment> MeanChange::cut(const Placement& placement) const {
  const DType dtype = placement.dtype(ArenaKind::value);
  const std::int64_t all = std::max<std::int64_t>(trainable_elements(placement), 1);
  std::vector<Fragment> fragments;
  std::int64_t before = 0;
  std::int64_t number = 0;  // index of the current fragment, from 0 to options_.fragments - 1
  for (const Placement::Entry& entry : placement.entries) {
    if (entry.role == ParameterRole::frozen) break;
    const bool is_trainable = entry.role == ParameterRole::trainable;
    const std::int64_t here = is_trainable ? before * options_.fragments / all : number;
    if (fragments.empty() || here != number)
      fragments.emplace_back().slice = {.offset = entry.offset, .count = 0, .dtype = dtype};
    number = here;
    Fragment& fragment = fragments.back();
    fragment.slice.count = entry.offset + entry.count - fragment.slice.offset;
    fragment.bytes += entry.type.bytes();
    if (!is_trainable) continue;
    fragment.trainables = fragment.slice;
    before += entry.type.shape.elements();
  }
  return fragments;
}

std::size_t MeanChange::trainables() const {
  return static_cast<std::size_t>(border_->placement().count(ParameterRole::trainable));
}

void MeanChange::count_step() {
  ++clock_;
  for (Fragment& fragment : fragments_) {
    ++fragment.steps;
    fragment.samples += border_->place().samples;
  }
}

bool MeanChange::has_moved() const {
  return std::ranges::any_of(fragments_, [](const Fragment& fragment) { return fragment.steps > 0; });
}

// True if the fragment's mean is due now. Within a period of `every` steps the fragments are due one after another, the
// last one at its end. At the end of an epoch, and if a period has fewer steps than there are fragments, all are due.
bool MeanChange::is_due(std::size_t fragment, std::int64_t every) const {
  if (fragments_[fragment].steps == 0) return false;
  const auto count = std::ssize(fragments_);
  if (border_->place().ends_epoch || every < count) return true;
  const std::int64_t place = static_cast<std::int64_t>(fragment + 1) * every / count;
  return clock_ % every == place % every;
}

std::optional<std::size_t> MeanChange::next_due(std::int64_t every) const {
  for (std::size_t fragment = 0; fragment < fragments_.size(); ++fragment)
    if (is_due(fragment, every)) return fragment;
  return std::nullopt;
}

template <class T>
std::optional<Mean<T>> MeanChange::next(std::int64_t every) {
  const bool ends_epoch = border_->place().ends_epoch;
  if (exchange_) {
    if (!ends_epoch && clock_ < exchange_->until) return std::nullopt;
    await_exchange();
    return take<T>();
  }
  const std::optional<std::size_t> due = next_due(every);
  if (!due) return std::nullopt;
  bring<T>(*due);
  if (thread_ && !ends_epoch && every / std::ssize(fragments_) > options_.delay) {
    exchange_->until = clock_ + options_.delay;
    thread_->begin(0);
    return std::nullopt;
  }
  {
    const ExchangeMeter::Wait wait(meter_);
    exchange<T>();
  }
  exchange_->is_made = true;
  if (options_.may_lose_ranks)
    ranks_.gather_all("",
                      fmt::format("which ranks have the mean of the weights after step {}", border_->step()));
  return take<T>();
}

template <class T>
void MeanChange::bring(std::size_t fragment) {
  const Fragment& from = fragments_[fragment];
  const auto first = static_cast<std::size_t>(from.slice.offset);
  const auto count = static_cast<std::size_t>(from.slice.count);
  const std::span<const T> anchor = anchor_.as<T>().subspan(first, count);
  const std::span<const T> weights = values<T>().subspan(first, count);
  const std::span<T> changes = changes_.as<T>().subspan(first, count);
  for (std::size_t i = 0; i < count; ++i) changes[i] = weights[i] - anchor[i];
  if (thread_) std::ranges::copy(changes, own_.as<T>().subspan(first, count).begin());
  const std::string step = fmt::format("the weights after step {}", border_->step());
  exchange_ = {.fragment = fragment,
               .steps = from.steps,
               .samples = from.samples,
               .what = fragments_.size() == 1 ? step : fmt::format("fragment {} of {}", fragment, step)};
}

template <class T>
void MeanChange::exchange() {
  const Fragment& of = fragments_[exchange_->fragment];
  const std::span<T> changes = changes_.as<T>().subspan(static_cast<std::size_t>(of.slice.offset),
                                                        static_cast<std::size_t>(of.slice.count));
  const ExchangeMeter::Exchange exchange(meter_, of.bytes);
  const T weight = static_cast<T>(weight_of(exchange_->samples, exchange_->what));
  for (T& change : changes) change *= weight;
  const std::int64_t sent_before = sum_.bytes_sent();
  sum_.sum(exchange_->fragment, changes, exchange_->what);
  meter_.add_sent(sum_.bytes_sent() - sent_before);
}

// Collective. Returns this rank's share of the samples of all ranks. The sum of the shares is 0 if every rank
// fails in its first step.
double MeanChange::weight_of(std::int64_t samples, std::string_view what) {
  std::int64_t all = samples;
  ranks_.sum(DType::int64, reinterpret_cast<std::byte*>(&all), 1, fmt::format("the samples for {}", what));
  return static_cast<double>(samples) / static_cast<double>(std::max<std::int64_t>(all, 1));
}

// Waits until the thread has ended its exchange. Does nothing without a thread.
void MeanChange::await_exchange() const {
  if (!exchange_ || exchange_->is_made || !thread_) return;
  const ExchangeMeter::Wait wait(meter_);
  const EventSpan span(EventKind::wait, exchange_->what);
  thread_->await(0);
  exchange_->is_made = true;
}

template <class T>
Mean<T> MeanChange::take() {
  Fragment& of = fragments_[exchange_->fragment];
  const std::size_t first = static_cast<std::size_t>(of.slice.offset);
  const std::size_t count = static_cast<std::size_t>(of.slice.count);
  sum_.accept(exchange_->fragment);
  of.steps -= exchange_->steps;
  of.samples -= exchange_->samples;
  ++taken_;
  exchange_.reset();
  if (border_->place().ends_epoch && !has_moved()) clock_ = 0;
  const std::span<const T> own = of.steps == 0 ? std::span<const T>() : own_.as<T>().subspan(first, count);
  return {first, changes_.as<T>().subspan(first, count), own};
}

template <class T>
std::optional<Mean<T>> MeanChange::catch_up() {
  const Progress farthest = farthest_progress();
  const bool missed = farthest[0] > taken_;
  if (missed && !(exchange_ && exchange_->is_made))
    throw InternalError("ranks were lost, and others have taken a mean that this rank does not have");
  std::optional<Mean<T>> held;
  if (missed) held = take<T>();
  exchange_.reset();
  clock_ = farthest[1];
  for (std::size_t i = 0; i < fragments_.size(); ++i) fragments_[i].steps = farthest[2 + i];
  return held;
}

MeanChange::Progress MeanChange::progress() const {
  Progress progress{taken_, clock_};
  for (const Fragment& fragment : fragments_) progress.push_back(fragment.steps);
  return progress;
}

MeanChange::Progress MeanChange::farthest_progress() {
  Progress farthest = progress();
  const std::string mine = fmt::format("{}", fmt::join(farthest, " "));
  for (const std::string& text : ranks_.gather_all(mine, "the means that the ranks have taken")) {
    std::istringstream words(text);
    const Progress theirs{std::istream_iterator<std::int64_t>(words), {}};
    farthest = std::max(farthest, theirs);
  }
  return farthest;
}

void MeanChange::give_up() noexcept { plexaura::give_up(thread_, ranks_); }

template std::optional<Mean<float>> MeanChange::next(std::int64_t);
template std::optional<Mean<double>> MeanChange::next(std::int64_t);
template std::optional<Mean<float>> MeanChange::catch_up();
template std::optional<Mean<double>> MeanChange::catch_up();

Tensor MeanChange::copy_values() const {
  Tensor copy(anchor_.type());
  std::memcpy(copy.data(), border_->fetch_values().data(), copy.bytes());
  return copy;
}

void MeanChange::write_values(const Tensor& copy) const {
  std::memcpy(border_->fetch_values().data(), copy.data(), copy.bytes());
}

void MeanChange::keep_counts(std::vector<StrategyState>& state) const {
  await_exchange();
  state.push_back({std::string(taken_name), Tensor::scalar(taken_)});
  sum_.keep(!exchange_, state);
  if (!has_moved()) return;
  std::vector<std::int64_t> steps, samples;
  for (const Fragment& fragment : fragments_) {
    steps.push_back(fragment.steps);
    samples.push_back(fragment.samples);
  }
  state.push_back({std::string(clock_name), Tensor::scalar(clock_)});
  state.push_back({std::string(steps_name), to_tensor(steps)});
  state.push_back({std::string(samples_name), to_tensor(samples), true});
  if (!exchange_ || !exchange_->is_made) return;
  const auto fragment = static_cast<std::int64_t>(exchange_->fragment);
  const std::int64_t until = exchange_->until;
  const std::int64_t count = std::ssize(fragments_);
  state.push_back({std::string(exchange_name), to_tensor({until, count, fragment, exchange_->steps})});
  state.push_back({std::string(brought_name), to_tensor({until, count, exchange_->samples}), true});
  Tensor mean(anchor_.type());
  std::memcpy(mean.data(), changes_.data(), mean.bytes());
  keep_arena(border_->placement(), mean, mean_prefix, false, state);
  // Rank 0 stores its changes as the state of all ranks: a rank that is new in a later run begins with the
  // weights of rank 0, and so needs the changes of rank 0.
  keep_arena(border_->placement(), own_, moved_prefix, !is_first_, state);
}

// Returns the exchange to which a checkpoint's state belongs. Returns null if it does not fit this run: if its mean is
// delayed and this run has no delay, or if the numbers of fragments differ. The changes of that exchange are then
// part of the next one.
MeanChange::Exchange* MeanChange::held(std::int64_t until, std::int64_t fragments) {
  const bool fits = fragments == std::ssize(fragments_) && (until == 0 || options_.delay > 0);
  if (!fits) return nullptr;
  if (!exchange_) exchange_ = Exchange{.until = until, .is_made = true};
  return &*exchange_;
}

// Restores a part of the state. If this run has another number of fragments, each fragment gets the counts of the
// checkpoint's first fragment.
void MeanChange::take_counts(const StrategyState& part) {
  sum_.take(part);
  take_arena(border_->placement(), changes_, mean_prefix, part);
  take_arena(border_->placement(), own_, moved_prefix, part);
  const std::size_t least = least_counts(part.name);
  if (least == 0) return;
  const std::span<const std::int64_t> numbers = counts_of(part, least);
  const bool fits = numbers.size() == fragments_.size();
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    if (part.name == steps_name) fragments_[i].steps = numbers[fits ? i : 0];
    if (part.name == samples_name) fragments_[i].samples = numbers[fits ? i : 0];
  }
  if (part.name == taken_name) taken_ = numbers[0];
  if (part.name == clock_name) clock_ = numbers[0];
  if (part.name != exchange_name && part.name != brought_name) return;
  Exchange* const exchange = held(numbers[0], numbers[1]);
  if (exchange == nullptr) return;
  if (part.name == brought_name) {
    exchange->samples = numbers[2];
  } else {
    if (numbers[2] >= numbers[1]) fail_damaged(part.name);
    exchange->fragment = static_cast<std::size_t>(numbers[2]);
    exchange->steps = numbers[3];
  }
}

}  // namespace plexaura
