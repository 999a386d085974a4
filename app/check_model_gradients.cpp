#include "app/check_model_gradients.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/registry.h"
#include "core/base/print.h"
#include "core/ops/batch_norm.h"
#include "testing/check_parameters.h"
#include "testing/copied_loss.h"
#include "testing/dead_gradients.h"
#include "testing/values.h"
#include "training/data/loader.h"
#include "training/programs/label_inputs.h"
#include "training/programs/model_inputs.h"

namespace plexaura {

namespace {

// The first batch of a run and the values of the parameters, for the graph of the loss.
struct FirstStep {
  BuiltModel model;
  std::vector<Feed> fields;
  std::vector<std::string> parameters;  // names of the trainable parameters
};

// Reads the first micro-batch of the first step, in the order in which a run reads it.
MicroBatch first_batch(const Setup& setup) {
  const TrainerOptions& options = setup.options.trainer;
  Loader loader(setup.data.train, {.batch_size = options.batch_size,
                                   .micro_batches = options.micro_batches,
                                   .seed = static_cast<std::uint64_t>(options.seed),
                                   .shuffle = options.shuffle,
                                   .weights = options.weights,
                                   .workers = 0,
                                   .on_error = options.on_error});
  Step step = loader.next();
  return std::move(step.micro_batches.front());
}

FirstStep make_first_step(const Setup& setup, const ParameterStore& store) {
  const MicroBatch batch = first_batch(setup);
  FirstStep first;
  first.model =
      build_model(builder_of(*setup.model), setup.data.train->fields(), batch.samples, store, Mode::train);
  check_batch_norms(*first.model.graph, "give training.batch_size two or more samples");
  for (const Feed& feed : feeds_of(setup.data.train->fields(), batch.fields, DType::float64))
    first.fields.emplace_back(feed.name(), Tensor(feed.tensor()));
  check_labels(label_inputs(*first.model.graph), first.fields);
  for (const ParameterSpec& spec : store.specs())
    if (spec.role == ParameterRole::trainable) first.parameters.push_back(spec.name);
  return first;
}

// Returns a parameter with its elements moved, if they are all equal, as those of biases and scales are at
// first. With biases of zero, the values in empty parts of an image are zero as well, where relu has a kink.
// Scales of zero make all gradients before them zero.
Tensor moved_if_constant(const Tensor& value, testing::Random& random) {
  Tensor moved(value.type());
  std::ranges::copy(value.as<double>(), moved.as<double>().begin());
  const auto elements = moved.as<double>();
  if (std::ranges::any_of(elements, [&](double element) { return element != elements[0]; })) return moved;
  for (double& element : elements) element += random.between(-0.1, 0.1);
  return moved;
}

// Returns the values that the loss needs. `move` changes the value of each trainable parameter.
template <class Move>
std::vector<Feed> feeds_for(const FirstStep& first, const ParameterStore& store, const Move& move) {
  std::vector<Feed> values = first.fields;
  for (const ParameterSpec& spec : store.specs()) {
    Tensor value = store.read(spec.name);
    values.emplace_back(spec.name,
                        spec.role == ParameterRole::trainable ? move(std::move(value)) : std::move(value));
  }
  return testing::values_needed(first.model.outputs.loss, values);
}

std::string difference_text(double difference) {
  return std::isfinite(difference) ? fmt::format("{:.1e}", difference) : "not finite";
}

std::string table_of(const ParameterReport& report) {
  std::size_t width = 9;
  std::size_t shape = 5;
  for (const ParameterGradient& row : report.parameters) {
    width = std::max(width, printable(row.name).size());
    shape = std::max(shape, to_string(row.shape).size());
  }
  std::string text =
      fmt::format("{:{}}  {:{}}  {:>10}  {:>10}\n", "parameter", width, "shape", shape, "first", "second");
  for (const ParameterGradient& row : report.parameters)
    text += fmt::format("{:{}}  {:{}}  {:>10}  {:>10}\n", printable(row.name), width, to_string(row.shape),
                        shape, difference_text(row.first),
                        report.why_no_second.empty() ? difference_text(row.second) : "-");
  return text;
}

// Returns the sentence at the end of the output.
std::string verdict_of(const ParameterReport& report, const ParameterCheckOptions& options) {
  const auto wrong = std::ranges::count_if(report.parameters, [&](const ParameterGradient& row) {
    return row.first > options.tolerance || row.second > options.second_tolerance;
  });
  if (!report.passed)
    return fmt::format("the gradients of {} of {} parameters differ from differences{}{}", wrong,
                       report.parameters.size(), report.places.empty() ? "" : ": ",
                       fmt::join(report.places, "; "));
  if (report.why_no_second.empty())
    return fmt::format("all {} gradients agree with differences, and so do their own gradients",
                       report.parameters.size());
  return fmt::format(
      "all {} gradients agree with differences; second derivatives were not compared, because {}",
      report.parameters.size(), report.why_no_second);
}

}  // namespace

int check_model_gradients(const CommandLine& line, Setup setup) {
  setup.options.types = ArenaTypes::all(DType::float64);
  const std::shared_ptr<Backend> backend = open_backend(line.backend);
  ParameterStore store = make_store_of(setup);
  if (!line.weights.empty())
    check_vocabulary(load_weights(line.weights, store, line.skip), line.weights, setup.options.trainer.notes);
  const FirstStep first = make_first_step(setup, store);
  if (first.parameters.empty())
    throw UserError(
        "--check-gradients has no gradient to check, because training.freeze freezes all parameters");
  const Node& loss = first.model.outputs.loss;

  testing::Random random(1);
  const std::vector<Feed> moved =
      feeds_for(first, store, [&](const Tensor& value) { return moved_if_constant(value, random); });
  const ParameterCheckOptions options;
  const ParameterReport report = check_parameters(loss, moved, first.parameters, *backend, options);
  std::string text = table_of(report);
  const std::vector<Feed> initial = feeds_for(first, store, [](Tensor value) { return value; });
  for (const DeadGradient& dead :
       find_dead_gradients(loss, initial, first.parameters, *backend, options.block))
    text += printable(to_string(dead)) + "\n";
  print_output(text + printable(verdict_of(report, options)) + "\n");
  return report.passed ? 0 : 1;
}

}  // namespace plexaura
