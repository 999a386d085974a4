#include "app/use/judge_samples.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "core/base/error.h"
#include "core/ops/softmax.h"
#include "models/predictor.h"
#include "training/files/shortage.h"

namespace plexaura {

namespace {

constexpr std::int64_t judged_at_once = 128;

// Samples that were read one after the other.
struct ReadBatch {
  std::vector<std::byte> bytes;
  std::vector<std::int64_t> indices;
  std::vector<std::int64_t> labels;
};

// Reads the samples from `first` up to, but without, `end`. Counts the samples that cannot be read.
ReadBatch read_batch(const SampleSource& source, std::int64_t first, std::int64_t end,
                     std::int64_t& unreadable) {
  const std::vector<Field> fields = source.fields();
  const auto bytes = static_cast<std::size_t>(fields[0].type.bytes());
  // Fields after the label, which mixed samples have, are read and ignored.
  std::vector<std::vector<std::byte>> others;
  for (const Field& field : std::span(fields).subspan(2))
    others.emplace_back(static_cast<std::size_t>(field.type.bytes()));
  ReadBatch batch;
  batch.bytes.resize(bytes * static_cast<std::size_t>(end - first));
  for (std::int64_t index = first; index < end; ++index) {
    std::int64_t label = 0;
    std::vector<std::span<std::byte>> values{
        std::span(batch.bytes).subspan(bytes * batch.indices.size(), bytes),
        std::as_writable_bytes(std::span(&label, 1))};
    values.insert(values.end(), others.begin(), others.end());
    try {
      source.read_fields(index, {}, values);
    } catch (const LimitReached&) {
      throw;
    } catch (const UserError&) {
      ++unreadable;
      continue;
    }
    batch.indices.push_back(index);
    batch.labels.push_back(label);
  }
  batch.bytes.resize(bytes * batch.indices.size());
  return batch;
}

// Returns the judgement of one sample. `outputs` are the logarithms of the probabilities.
JudgedSample judged(std::int64_t index, std::int64_t label, std::span<const double> outputs) {
  const auto best = std::ranges::max_element(outputs);
  const double loss = -outputs[static_cast<std::size_t>(label)];
  return {.index = index,
          .label = label,
          .predicted = best - outputs.begin(),
          .probability = std::exp(*best),
          .loss = std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss};
}

}  // namespace

bool can_judge(const SampleSource& source, const Model& model) {
  const std::vector<Field> fields = source.fields();
  return model.info().task == Task::classification && model.info().loss == Loss::softmax_cross_entropy &&
         fields.size() >= 2 && fields[1].type == TensorType{DType::int64, {}};
}

Judgement judge_samples(const SampleSource& source, const Model& model, ParameterStore& store,
                        Backend& backend, std::int64_t most, std::size_t worst) {
  const auto classes = static_cast<std::size_t>(model.classes());
  const Field samples = source.fields()[0];
  Predictor predict([&](const Node& x) { return log_softmax(model(x), 1); }, store, backend);
  Judgement judgement;
  judgement.confusion.resize(classes * classes);
  const std::int64_t all = std::min(most, source.size());
  for (std::int64_t first = 0; first < all; first += judged_at_once) {
    const ReadBatch batch =
        read_batch(source, first, std::min(first + judged_at_once, all), judgement.unreadable);
    if (batch.indices.empty()) continue;
    Tensor tensor(TensorType{samples.type.dtype, batched(std::ssize(batch.indices), samples.type.shape)});
    std::ranges::copy(batch.bytes, tensor.data());
    const std::vector<double> outputs = predict(tensor).to_doubles();
    for (std::size_t row = 0; row < batch.indices.size(); ++row) {
      const JudgedSample sample =
          judged(batch.indices[row], batch.labels[row], std::span(outputs).subspan(row * classes, classes));
      ++judgement.confusion[static_cast<std::size_t>(sample.label) * classes +
                            static_cast<std::size_t>(sample.predicted)];
      judgement.worst.push_back(sample);
    }
    judgement.samples += std::ssize(batch.indices);
    std::ranges::stable_sort(judgement.worst, std::greater(), &JudgedSample::loss);
    if (judgement.worst.size() > worst) judgement.worst.resize(worst);
  }
  return judgement;
}

}  // namespace plexaura
