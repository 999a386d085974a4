#include "app/write_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "app/options/outputs.h"
#include "app/use/judge_samples.h"
#include "core/base/error.h"
#include "training/data/remote_samples.h"
#include "training/files/file.h"
#include "training/files/shortage.h"
#include "training/optimizers/averaged_weights.h"
#include "training/ranks/on_rank_0.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t most_judged = 10'000;
constexpr std::size_t worst_shown = 24;
constexpr std::int64_t examples_shown = 6;
constexpr std::int64_t epochs_of_examples = 5;
// Largest side of a picture; of a larger picture not all pixels are written.
constexpr std::int64_t largest_side = 160;
constexpr std::int64_t most_classes = 100;  // largest number of classes for which confusions are written

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// True for images: uint8 [channels, height, width] with 1 or 3 channels.
bool are_pictures(const SampleSource& source) {
  const TensorType type = source.fields()[0].type;
  return type.dtype == DType::uint8 && type.shape.rank() == 3 && (type.shape[0] == 1 || type.shape[0] == 3);
}

bool is_remote(const SampleSource& source) { return dynamic_cast<const RemoteSamples*>(&source) != nullptr; }

// Reads the pixels of a sample. Returns nothing if it cannot be read.
std::optional<std::vector<std::uint8_t>> pixels_of(const SampleSource& source, std::int64_t index,
                                                   const SampleContext& context) {
  std::vector<std::vector<std::byte>> values;
  std::vector<std::span<std::byte>> places;
  for (const Field& field : source.fields())
    values.emplace_back(static_cast<std::size_t>(field.type.bytes()));
  for (std::vector<std::byte>& value : values) places.emplace_back(value);
  try {
    source.read_fields(index, context, places);
  } catch (const LimitReached&) {
    throw;
  } catch (const UserError&) {
    return std::nullopt;
  }
  std::vector<std::uint8_t> pixels(values[0].size());
  std::ranges::transform(values[0], pixels.begin(),
                         [](std::byte one) { return std::to_integer<std::uint8_t>(one); });
  return pixels;
}

// Returns a picture of the shape [channels, height, width] with its pixels as hexadecimal digits, row by row, with all
// channels of a pixel side by side. Leaves out rows and columns until no side is longer than largest_side pixels.
Json picture_json(const Shape& shape, std::span<const std::uint8_t> pixels) {
  const std::int64_t channels = shape[0];
  const std::int64_t height = shape[1];
  const std::int64_t width = shape[2];
  const std::int64_t stride = (std::max(height, width) + largest_side - 1) / largest_side;
  std::string digits;
  for (std::int64_t y = 0; y < height; y += stride)
    for (std::int64_t x = 0; x < width; x += stride)
      for (std::int64_t channel = 0; channel < channels; ++channel)
        digits += fmt::format("{:02x}", pixels[static_cast<std::size_t>((channel * height + y) * width + x)]);
  return {{"width", (width + stride - 1) / stride},
          {"height", (height + stride - 1) / stride},
          {"channels", channels},
          {"pixels", digits}};
}

Json figures_json(const EndedRun& run, int ranks) {
  const TrainingResult& result = run.result;
  return {{"configuration", run.line.config},
          {"data", run.setup.data.description},
          {"samples", run.setup.data.preparation},
          {"parameters", run.store.trainable_elements()},
          {"backend", run.line.backend},
          {"ranks", ranks},
          {"batch_size", run.setup.options.trainer.batch_size},
          {"steps", result.steps},
          {"samples_per_second", number_json(result.images_per_second)},
          {"share_waiting_for_data", number_json(result.stall_share)},
          {"signal", result.signal}};
}

Json memory_json(const EndedRun& run) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {{"peak_of_rank_0", std::int64_t{usage.ru_maxrss} * 1024},
          {"activations", run.largest.arena_bytes},
          {"activations_lower_bound", run.largest.estimates.arena_lower_bound}};
}

// Fills the parts that need the validation samples, or writes the reason why these parts are missing.
void add_judgement(Json& facts, const EndedRun& run) {
  const auto leave_out = [&](const std::string& reason) {
    facts["missing"]["confusion"] = facts["missing"]["worst"] = reason;
  };
  const SampleSource& source = *run.setup.data.validation;
  const Model& model = *run.setup.model;
  if (run.result.signal != 0)
    return leave_out("a signal ended the run, so that the samples were not predicted again");
  if (is_remote(source)) return leave_out("the rank that read the samples was lost");
  if (source.size() == 0) return leave_out("the run has no validation samples");
  if (!can_judge(source, model))
    return leave_out(
        "samples are judged only in a classification by softmax_cross_entropy with one label each");
  Judgement judgement;
  with_averages(run.store, run.setup.options.trainer.optimizer, [&] {
    judgement = judge_samples(source, model, run.store, run.backend, most_judged, worst_shown);
  });
  facts["judged"] = {{"samples", judgement.samples},
                     {"of", source.size()},
                     {"unreadable", judgement.unreadable},
                     {"pictures", are_pictures(source)}};
  facts["worst"] = Json::array();
  for (const JudgedSample& sample : judgement.worst) {
    Json one{{"index", sample.index},
             {"label", sample.label},
             {"predicted", sample.predicted},
             {"probability", number_json(sample.probability)},
             {"loss", number_json(sample.loss)}};
    if (are_pictures(source))
      if (const auto pixels = pixels_of(source, sample.index, {}))
        one["picture"] = picture_json(source.fields()[0].type.shape, *pixels);
    facts["worst"].push_back(std::move(one));
  }
  if (model.classes() > most_classes)
    facts["missing"]["confusion"] = fmt::format(
        "there are {} classes, and a matrix of more than {} cannot be read", model.classes(), most_classes);
  else
    facts["confusion"] = judgement.confusion;
}

// Adds the first training samples, as the first epochs of the run read them, except that mixing has other partners.
void add_examples(Json& facts, const EndedRun& run) {
  const SampleSource& source = *run.setup.data.train;
  if (is_remote(source)) {
    facts["missing"]["examples"] = "the rank that read the samples was lost";
    return;
  }
  if (!are_pictures(source)) {
    facts["missing"]["examples"] = "the samples are no images of bytes";
    return;
  }
  Json rows = Json::array();
  bool changes = false;
  const auto seed = static_cast<std::uint64_t>(run.setup.options.trainer.seed);
  for (std::int64_t index = 0; index < std::min(examples_shown, source.size()); ++index) {
    Json row = Json::array();
    std::optional<std::vector<std::uint8_t>> first;
    for (std::int64_t epoch = 0; epoch < epochs_of_examples; ++epoch) {
      // With mixing, each epoch mixes the sample with the one after it, in another share.
      const auto pixels = pixels_of(
          source, index,
          {.seed = seed, .epoch = epoch, .step = epoch + 1, .partner = (index + 1) % source.size()});
      if (!pixels) continue;
      changes = changes || (first && *first != *pixels);
      if (!first) first = pixels;
      row.push_back(picture_json(source.fields()[0].type.shape, *pixels));
    }
    rows.push_back(std::move(row));
  }
  if (changes)
    facts["examples"] = std::move(rows);
  else
    facts["missing"]["examples"] =
        "the data are read without augmentation: a sample is the same in each epoch";
}

std::string report_text(const EndedRun& run, int ranks) {
  Json facts{{"format", "plexaura report 1"}};  // begins with report_begin
  facts["missing"] = Json::object();
  facts["run"] = figures_json(run, ranks);
  facts["memory"] = memory_json(run);
  facts["classes"] = run.setup.data.trained.classes;
  if (run.line.profile.empty())
    facts["missing"]["profile"] =
        "the run was started without --profile FILE, which measures the time of each op";
  else
    facts["profile"] = fs::absolute(run.line.profile).string();
  add_judgement(facts, run);
  add_examples(facts, run);
  return facts.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void write_report(Communicator& ranks, const EndedRun& run) {
  const int count = ranks.size();
  on_rank_0(ranks, "writing the report", [&] {
    AtomicFile file(fs::path(run.line.report) / report_facts);
    file.write(report_text(run, count));
    file.commit();
  });
}

}  // namespace plexaura
