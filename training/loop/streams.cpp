#include "training/loop/streams.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>

#include "core/base/profile.h"
#include "training/loop/epochs.h"
#include "training/ranks/on_rank_0.h"

namespace plexaura {

namespace {

// Limit of TrainerOptions::steps_per_epoch and shuffle_buffer, so that products of them do not overflow.
constexpr std::int64_t most = 1'000'000'000;

void require_in_range(const char* what, std::int64_t value) {
  if (value < 1 || value > most)
    throw UserError(
        fmt::format("TrainerOptions::{} is {}; with a stream give a number from 1 to {}", what, value, most));
}

bool has_next(const Run& run, StreamSteps& steps, const std::function<void()>& on_sample = {}) {
  const ProfileSpan span(run.options.profile, "waiting for data", "data");
  return steps.has_next(on_sample);
}

// Opens this rank's stream, passes over the samples that were used, and reads its next step. The other ranks wait as long
// as samples come.
void read_first_step(Run& run, StreamSteps& steps) {
  WorkProgress progress(deadlines_without_progress * run.ranks().deadline_seconds());
  const auto read = [&] {
    has_next(run, steps, [&] { progress.made(); });
    steps.check();
  };
  on_some_ranks(run.ranks(), true, "the first samples of the streams", read, &progress);
}

// The answers of all ranks to the question whether the run has a next step.
enum class NextStep : std::uint8_t { is_there, is_interrupted, is_lacking };

// Returns is_lacking if the stream of a rank has ended, or else is_interrupted if the reader of a rank was interrupted. An
// error of one rank is an error of all, also if the stream of another rank ends at the same step.
NextStep find_next_step(Run& run, StreamSteps& steps) {
  const bool has_step = has_next(run, steps);
  const bool was_interrupted = steps.was_interrupted();
  std::array<std::int64_t, 2> ranks{was_interrupted ? 1 : 0, has_step || was_interrupted ? 0 : 1};
  run.ranks().sum(DType::int64, reinterpret_cast<std::byte*>(ranks.data()), ranks.size(),
                  "whether a stream has ended");
  const auto [interrupted, ended] = ranks;
  if (interrupted + ended == 0) return NextStep::is_there;
  together(run.ranks(), "the end of the streams", [&] { steps.check(); });
  return ended > 0 ? NextStep::is_lacking : NextStep::is_interrupted;
}

// True if the next step is the last one that the run is to make, so that no samples are needed after it.
bool is_last_planned(const Run& run) {
  const RunPlace& place = run.progress.place;
  const std::int64_t steps = run.division.train.steps_per_epoch();
  return place.step + 1 == run.options.steps ||
         (place.epoch + 1 == run.options.epochs && place.step_in_epoch + 1 == steps);
}

}  // namespace

void check_stream(const TrainerParts& parts, const TrainerOptions& options, const StrategyParts& strategy) {
  if (!parts.stream) {
    if (options.steps_per_epoch != 0 || options.shuffle_buffer != 1)
      throw UserError(
          "TrainerOptions::steps_per_epoch and shuffle_buffer are for a stream, and there is none; remove "
          "them, or set TrainerParts::stream");
    return;
  }
  if (parts.train)
    throw UserError("the Trainer has training data twice; set TrainerParts::train or stream, not both");
  if (options.steps_per_epoch == 0)
    throw UserError(
        "the number of samples of a stream is not known, so TrainerOptions::steps_per_epoch must say how "
        "many "
        "steps an epoch has");
  require_in_range("steps_per_epoch", options.steps_per_epoch);
  require_in_range("shuffle_buffer", options.shuffle_buffer);
  if (options.weights)
    throw UserError("TrainerOptions::weights draws samples at random, which a stream cannot do; remove them");
  if (options.on_error == OnError::skip)
    throw UserError(
        "TrainerOptions::on_error is skip, and a sample of a stream cannot be replaced by another one; leave "
        "out broken samples in the stream itself");
  if (strategy.dealer != nullptr || strategy.courier != nullptr)
    throw UserError(
        "with this strategy a rank does not read the samples of its own part of each step, as a stream needs "
        "it; choose another strategy, such as allreduce");
}

std::unique_ptr<StreamSteps> make_stream_steps(const Run& run) {
  const StreamSource& source = *run.parts.stream;
  const auto rank = static_cast<std::size_t>(run.ranks().rank());
  return std::make_unique<StreamSteps>(
      run.parts.stream, StreamOptions{.plan = run.division.train,
                                      .rank = run.ranks().rank(),
                                      .first_epoch = run.progress.place.epoch,
                                      .first_step = run.progress.place.step_in_epoch,
                                      .used = run.progress.streamed.at(source.is_divided() ? rank : 0),
                                      .shuffle_buffer = run.options.shuffle_buffer,
                                      .seed = static_cast<std::uint64_t>(run.options.seed),
                                      .memory = run.programs->feed_memory()});
}

bool begin_stream(Run& run, StreamSteps& steps) {
  read_first_step(run, steps);
  const NextStep next = find_next_step(run, steps);
  if (next == NextStep::is_there) return true;
  run.progress.stopped = true;
  if (next == NextStep::is_interrupted) return false;
  RunPlace& place = run.progress.place;
  if (place.step == 0)
    together(run.ranks(), "the end of the streams", [&] {
      if (steps.has_next()) return;
      throw UserError(
          fmt::format("the stream of rank {} has too few samples for one step of {}; give it more, or lower "
                      "TrainerOptions::batch_size, in YAML training.batch_size",
                      run.number(), run.options.batch_size));
    });
  run.result.stream_ended = true;
  if (place.step_in_epoch == 0) return false;
  // The run that is resumed stopped after the last step of the stream, and could not know that its epoch had ended.
  run.progress.end_epoch();
  place.saved = false;
  return prepare_step(run);
}

bool ends_with_stream(Run& run, StreamSteps& steps) {
  if (is_last_planned(run)) return false;
  const NextStep next = find_next_step(run, steps);
  run.progress.stopped = run.progress.stopped || next != NextStep::is_there;
  run.result.stream_ended = next == NextStep::is_lacking;
  return run.result.stream_ended;
}

void count_streamed(Run& run) {
  std::vector<std::int64_t>& streamed = run.progress.streamed;
  const BatchPlan& plan = run.division.train;
  if (!run.parts.stream->is_divided()) {
    streamed.front() += plan.batch_size;
    return;
  }
  for (std::int64_t rank = 0; rank < plan.ranks; ++rank)
    streamed[static_cast<std::size_t>(rank)] += plan.rank_share(0, rank).count;
}

}  // namespace plexaura
