#include "app/report/report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "app/report/terminal.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/print.h"
#include "models/zoo/summary.h"

namespace plexaura {

namespace {

// The seconds between two progress lines in a file, and between two updates of the line on a terminal.
constexpr double seconds_in_file = 1;
constexpr double seconds_on_terminal = 0.1;

std::string row(std::string_view name, const std::string& value) {
  return fmt::format("  {:<26}{}\n", name, printable(value));
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

// Returns a text such as "1,234" or "0.52".
std::string rate_text(double rate) {
  return rate < 100 ? fmt::format("{:.3g}", rate) : with_commas(std::llround(rate));
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

// Returns the text of a metric. An accuracy is shown in percent.
std::string value_text(const MetricValue& metric) {
  return metric.name.starts_with("accuracy") ? percent(metric.value) : fmt::format("{:.4f}", metric.value);
}

// Returns a text such as "  accuracy 93.00 %  accuracy_top5 99.00 %".
std::string metrics_text(const std::vector<MetricValue>& metrics, std::string_view kind = "") {
  std::string text;
  for (const MetricValue& metric : metrics)
    text += fmt::format("  {}{} {}", kind, metric.name, value_text(metric));
  return text;
}

std::string loss_scale_text(const LossScale& scale) {
  const std::string last = scale.scale < 1 ? fmt::format("1/{}", with_commas(std::llround(1 / scale.scale)))
                                           : with_commas(std::llround(scale.scale));
  return fmt::format("{} at the end; steps skipped: {}", last,
                     with_commas(std::llround(scale.skipped_steps)));
}

// Returns the rows about the best epoch. Returns no rows if no epochs were compared.
std::string goal_rows(const TrainingResult& result, const TrainerOptions& options) {
  if (!options.goal || !result.best.is_known()) return "";
  const MetricValue best{options.goal->metric, result.best.value};
  std::string text = row(fmt::format("best validation {}", best.name),
                         fmt::format("{} after epoch {}", value_text(best), result.best.epoch + 1));
  if (result.is_exhausted)
    text +=
        row("ended early",
            fmt::format("after {} without a better one",
                        result.best.worse == 1 ? "1 epoch" : fmt::format("{} epochs", result.best.worse)));
  if (!options.output.empty()) text += row("best checkpoint", (options.output / "best").string());
  return text;
}

}  // namespace

std::string seconds_text(double seconds) {
  return seconds < 0.9995 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.2f} s", seconds);
}

std::string validation_text(double loss, const std::vector<MetricValue>& metrics) {
  if (std::isnan(loss)) return "no validation";
  return fmt::format("validation loss {:.4f}{}", loss, metrics_text(metrics, "validation "));
}

std::string exchange_text(const ExchangeRecord& record) {
  const auto bytes = static_cast<double>(record.bytes);
  std::string text = fmt::format("exchanged {} in {} ({}/s)", bytes_text(bytes), seconds_text(record.seconds),
                                 bytes_text(1e9 * record.gb_per_second()));
  if (record.sent_bytes)
    text += *record.sent_bytes > 0
                ? fmt::format("  sent {}", bytes_text(static_cast<double>(*record.sent_bytes)))
                : "  sent nothing";
  if (!record.overlaps) return text + "  overlap off";
  if (!record.waited_seconds) return text + "  overlap on";
  return text + fmt::format("  waited {}  overlap {:.0f} %", seconds_text(*record.waited_seconds),
                            100 * record.overlap().value_or(0));
}

std::string straggler_text(const RankWaits::Straggler& straggler) {
  return fmt::format("the others waited {} for rank {}", seconds_text(straggler.seconds), straggler.number);
}

RunReport::RunReport(bool speaks, const RecordFiles& files, std::int64_t epochs)
    : speaks_(speaks), console_(STDOUT_FILENO), columns_(terminal_columns()), epochs_(epochs) {
  if (!speaks_) return;
  if (!files.log.empty()) log_.emplace(files.log);
  if (!files.tensorboard.empty()) tensorboard_.emplace(files.tensorboard);
}

void RunReport::speak(const RecordFiles& files) {
  if (std::exchange(speaks_, true)) return;
  const auto open = [](const char* option, const std::string& path, const auto& emplace) {
    try {
      if (!path.empty()) emplace();
    } catch (const Error& error) {
      print_error(fmt::format("{}; the run continues without {}", error.what(), option));
    }
  };
  open("--log", files.log, [&] { log_.emplace(files.log, JsonLog::Owner::heir); });
  open("--tensorboard", files.tensorboard, [&] { tensorboard_.emplace(files.tensorboard); });
}

std::string dead_gradients_sentence(const std::vector<std::string>& dead) {
  constexpr std::size_t most = 5;
  const std::span<const std::string> first(dead.data(), std::min(dead.size(), most));
  return fmt::format(
      "some parameters are not trained: the gradient of {}{}; --check-gradients names the ops that make them "
      "so",
      fmt::join(first, ", of "), dead.size() > most ? fmt::format(", and {} more", dead.size() - most) : "");
}

void RunReport::log(std::span<const JsonField> fields) {
  if (log_) log_->write(fields);
}

// Ends the line of the progress bar, so that later output, such as an error, begins on a line of its own.
RunReport::~RunReport() {
  if (line_is_open_) console_.print("\n");
}

void RunReport::step(const StepRecord& record, std::int64_t steps_in_epoch) {
  last_step_ = record;
  if (!speaks_) return;
  if (!record.dead_gradients.empty()) say(dead_gradients_sentence(record.dead_gradients));
  if (log_) log_->step(record);
  if (tensorboard_) tensorboard_->step(record);
  const double time = seconds_now();
  const std::int64_t done = record.step_in_epoch;
  // True at the end of an epoch of which a line was shown: the end is shown even if it comes soon after that
  // line.
  const bool ends_shown_epoch = done == steps_in_epoch && shown_epoch_ == record.epoch;
  if (time - last_line_ < (columns_ > 0 ? seconds_on_terminal : seconds_in_file) && !ends_shown_epoch) return;
  last_line_ = time;
  shown_epoch_ = record.epoch;
  if (columns_ > 0) {
    console_.print(clear_line + progress(record, done, steps_in_epoch).substr(0, columns_ - 1));
    line_is_open_ = true;
    return;
  }
  console_.print(fmt::format("epoch {}/{}  step {}/{}  loss {:.4f}{}  {} samples/s  rate {:.3g}\n",
                             record.epoch + 1, epochs_, done, steps_in_epoch, record.loss,
                             metrics_text(record.metrics), rate_text(record.images_per_second),
                             record.learning_rate));
}

std::string RunReport::progress(const StepRecord& record, std::int64_t done, std::int64_t all) {
  if (record.epoch != clocked_epoch_) {
    clocked_epoch_ = record.epoch;
    clocked_step_ = done;
    clocked_at_ = last_line_;
  }
  const double step_seconds =
      (last_line_ - clocked_at_) / static_cast<double>(std::max<std::int64_t>(done - clocked_step_, 1));
  const std::string left =
      done > clocked_step_ ? "  " + clock_text(step_seconds * static_cast<double>(all - done)) + " left" : "";
  return fmt::format("epoch {}/{} {} {}/{}  loss {:.4f}{}  {}/s{}", record.epoch + 1, epochs_,
                     progress_bar(done, all), done, all, record.loss, metrics_text(record.metrics),
                     rate_text(record.images_per_second), left);
}

void RunReport::epoch(const EpochRecord& record) {
  if (!speaks_) return;
  if (log_) log_->epoch(record);
  if (tensorboard_) tensorboard_->epoch(record);
  say(fmt::format("epoch {}/{}  done in {:.2f} s  train loss {:.4f}  {}", record.epoch + 1, epochs_,
                  record.seconds, record.train_loss, validation_text(record.val_loss, record.val_metrics)));
  if (record.exchange)
    say(fmt::format("epoch {}/{}  {}", record.epoch + 1, epochs_, exchange_text(*record.exchange)));
  const auto straggler = record.waits ? record.waits->straggler() : std::nullopt;
  if (straggler) say(fmt::format("epoch {}/{}  {}", record.epoch + 1, epochs_, straggler_text(*straggler)));
}

void RunReport::say(const std::string& line) {
  if (!line.empty()) show(printable(line));
}

void RunReport::show(const std::string& text) {
  if (!speaks_) return;
  console_.print((line_is_open_ ? clear_line : "") + text + "\n");
  line_is_open_ = false;
}

void RunReport::summary(const TrainingResult& result, const ParameterStore& store, const std::string& log,
                        const TrainerOptions& options) {
  if (!speaks_) return;
  std::string text;
  text += row("steps", fmt::format("{}{}", with_commas(result.steps),
                                   result.steps_now < result.steps
                                       ? fmt::format(", {} of them now", with_commas(result.steps_now))
                                       : ""));
  if (const auto& epoch = result.last_epoch) {
    text += row("training loss", fmt::format("{:.4f}", epoch->train_loss));
    if (std::isfinite(epoch->val_loss)) {
      text += row("validation loss", fmt::format("{:.4f}", epoch->val_loss));
      for (const MetricValue& metric : epoch->val_metrics)
        text += row(fmt::format("validation {}", metric.name), value_text(metric));
    }
  } else if (result.steps_now > 0) {
    text += row("loss", fmt::format("{:.4f} (last step; no epoch was finished)", last_step_.loss));
  }
  if (result.steps_now > 0)
    text +=
        row("samples/s", fmt::format("{} (median of the last steps; {:.1f} % of the time waiting for data)",
                                     rate_text(result.images_per_second), 100 * result.stall_share));
  text += row("parameters", with_commas(store.trainable_elements()));
  if (store.types().scales_loss()) text += row("loss scale", loss_scale_text(store.read_loss_scale()));
  text += goal_rows(result, options);
  if (result.stream_ended) text += row("ended early", "a stream has no samples for another step");
  const std::string checkpoints = options.output.string();
  text += row("checkpoint", checkpoints.empty() ? "none (output.dir is not set)" : checkpoints);
  text += row("log", log.empty() ? "none (--log FILE writes one)" : log);
  if (result.skipped.count > 0)
    text += row("unreadable samples", fmt::format("{} of training, replaced by others; the first: {}",
                                                  result.skipped.count, result.skipped.first));
  if (result.skipped_validation.count > 0)
    text += row("unreadable samples",
                fmt::format("{} of validation, left out of its figures; the first: {}",
                            result.skipped_validation.count, result.skipped_validation.first));
  text.pop_back();
  show("\n" + text);
  if (const int failure = console_.failure(); failure != 0)
    print_error(
        fmt::format("the output of the run could not be written completely: {}; --log FILE keeps its figures",
                    std::generic_category().message(failure)));
}

std::string host_op_sentence(const std::string& op, const Backend& backend) {
  return fmt::format("op {} runs on the host: the backend '{}' has no kernel for it", op,
                     backend.info().name);
}

std::string bytes_text(double bytes) {
  if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes * 1e-3);
  return bytes < 1e9 ? fmt::format("{:.1f} MB", bytes * 1e-6) : fmt::format("{:.2f} GB", bytes * 1e-9);
}

}  // namespace plexaura
