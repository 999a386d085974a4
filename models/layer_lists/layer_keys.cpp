#include "models/layer_lists/layer_keys.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/layer_lists/layer_kinds.h"
#include "models/layers/functional.h"

namespace plexaura {

namespace {

constexpr NumberRange count{.minimum = 1, .maximum = 1 << 24};
constexpr NumberRange window{.minimum = 1, .maximum = 1 << 12};
constexpr NumberRange border{.minimum = 0, .maximum = 1 << 12};

// Returns the largest number of outputs of a layer whose weight has `each` elements for one output. Beyond this number of
// outputs, the number of elements would not be exact.
double most_outputs(std::int64_t each) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 59;
  return static_cast<double>(std::max<std::int64_t>(most_elements / std::max<std::int64_t>(each, 1), 1));
}

Need with_type(std::vector<std::string> types) { return {.key = "type", .values = std::move(types)}; }

std::vector<std::string> types_of_layers() {
  std::vector<std::string> types;
  for (const LayerKind& kind : layer_kinds()) types.push_back(kind.type);
  return types;
}

std::vector<std::string> activations_or_none() {
  std::vector<std::string> words = layers::Activation::names();
  words.push_back("none");
  return words;
}

std::string meaning_of_types() {
  std::string meaning = "the kind of the layer";
  for (const LayerKind& kind : layer_kinds())
    meaning +=
        fmt::format("{} `{}`: {}", kind.type == layer_kinds()[0].type ? "." : ";", kind.type, kind.meaning);
  return meaning;
}

std::vector<Key> first_keys(LayerKeys& keys, const LayerPlace& place) {
  return {
      {.name = "type",
       .into = &keys.type,
       .words = types_of_layers(),
       .required = true,
       .meaning = meaning_of_types()},
      {.name = "name",
       .into = &keys.name,
       .late_default = {.set =
                            [&keys, numbers = place.numbers] {
                              const std::string& prefix = kind_of_layer(keys.type).prefix;
                              const auto before = numbers.find(prefix);
                              keys.name = fmt::format("{}{}", prefix,
                                                      before == numbers.end() ? 1 : before->second + 1);
                            }},
       .meaning = "letters, digits, `_` and `-`; by default the kind and a number: `conv1`, `bn1`, `fc2`"},
      {.name = "units",
       .into = &keys.units,
       .range = count,
       .most = [x = place.input] { return most_outputs(features_of(x)); },
       .late_default = {.set = [&keys, classes = place.classes] { keys.units = classes; }},
       .needs = with_type({"linear"}),
       .meaning = "number of outputs; by default the number of classes, targets or tokens"},
      {.name = "units",
       .into = &keys.units,
       .range = count,
       .most = [x = place.input] { return most_outputs(4 * features_of(x)); },
       .required = true,
       .needs = with_type({"rnn", "lstm", "gru"}),
       .meaning = "number of hidden values"},
      {.name = "units",
       .into = &keys.units,
       .range = count,
       .most = [classes = place.classes] { return most_outputs(classes); },
       .required = true,
       .needs = with_type({"embedding"}),
       .meaning = "number of values for each token"},
      {.name = "deviation",
       .into = &keys.deviation,
       .range = {.above = 0},
       .needs = with_type({"embedding"}),
       .meaning = "standard deviation of the normal distribution with which the table starts"},
  };
}

std::vector<Key> window_keys(LayerKeys& keys, const LayerPlace& place) {
  const std::vector<std::string> convolutions{"conv", "conv_transpose"};
  const std::vector<std::string> pools{"max_pool", "avg_pool"};
  const std::vector<std::string> windows{"conv", "conv_transpose", "max_pool", "avg_pool"};
  const auto elements = [&keys, x = place.input] {
    const std::int64_t axes = std::max<std::int64_t>(x.rank() - 2, 2);
    std::int64_t each = channels_of(x);
    for (std::int64_t axis = 0; axis < axes; ++axis) each *= keys.kernel;
    return each;
  };
  return {
      {.name = "kernel",
       .into = &keys.kernel,
       .range = window,
       .required = true,
       .needs = with_type(windows),
       .meaning = "extent of the window along each axis"},
      {.name = "channels",
       .into = &keys.channels,
       .range = count,
       .most = [elements] { return most_outputs(elements()); },
       .required = true,
       .needs = with_type(convolutions),
       .meaning = "number of channels that go out"},
      {.name = "stride",
       .into = &keys.stride,
       .range = window,
       .needs = with_type(convolutions),
       .meaning = "distance of two windows"},
      {.name = "stride",
       .into = &keys.stride,
       .range = window,
       .late_default = {.set = [&keys] { keys.stride = keys.kernel; }},
       .needs = with_type(pools),
       .meaning = "distance of two windows; by default `kernel`"},
      {.name = "padding",
       .into = &keys.padding,
       .range = border,
       .needs = with_type(windows),
       .meaning = "width of the border around the input; for `conv_transpose` it is cut from the output"},
      {.name = "output_padding",
       .into = &keys.output_padding,
       .range = border,
       .needs = with_type({"conv_transpose"}),
       .meaning = "width of what is added at the end of the output; less than `stride`"},
      {.name = "dilation",
       .into = &keys.dilation,
       .range = window,
       .needs = with_type(convolutions),
       .meaning = "distance of two elements of a window"},
      {.name = "groups",
       .into = &keys.groups,
       .range = count,
       .needs = with_type(convolutions),
       .meaning =
           "number of groups of channels that do not meet; divides the channels that come in and go out"},
      {.name = "groups",
       .into = &keys.groups,
       .range = count,
       .required = true,
       .needs = with_type({"group_norm"}),
       .meaning = "number of groups of channels, each of which is normalised; divides the channels"},
      {.name = "bias",
       .into = &keys.bias,
       .needs = with_type({"conv", "conv_transpose", "linear"}),
       .meaning = "whether each output has a bias"},
      {.name = "count_include_pad",
       .into = &keys.count_include_pad,
       .needs = with_type({"avg_pool"}),
       .meaning = "whether the mean counts the padding"},
  };
}

std::vector<Key> norm_keys(LayerKeys& keys) {
  return {
      {.name = "momentum",
       .into = &keys.norm.momentum,
       .range = {.minimum = 0, .maximum = 1},
       .needs = with_type({"batch_norm"}),
       .meaning = "weight of a batch in the running statistics"},
      {.name = "epsilon",
       .into = &keys.norm.epsilon,
       .range = {.above = 0},
       .needs = with_type({"batch_norm", "frozen_batch_norm", "layer_norm", "group_norm", "instance_norm"}),
       .meaning = "added to the variance"},
      {.name = "synchronised",
       .into = &keys.norm.synchronised,
       .needs = with_type({"batch_norm"}),
       .meaning = "whether the statistics are over the samples of all ranks; not with `async-server` and "
                  "`downpour`, whose ranks do not make each step together"},
      {.name = "p",
       .into = &keys.p,
       .range = {.minimum = 0, .below = 1},
       .needs = with_type({"dropout"}),
       .meaning = "the probability that a value is dropped"},
  };
}

std::vector<Key> sequence_keys(LayerKeys& keys, const LayerPlace& place) {
  const Need encoder = with_type({"transformer_encoder"});
  return {
      {.name = "heads",
       .into = &keys.heads,
       .range = count,
       .required = true,
       .needs = encoder,
       .meaning = "number of heads of the attention; divides the features"},
      {.name = "feedforward",
       .into = &keys.transformer.feedforward,
       .range = count,
       .most = [x = place.input] { return most_outputs(features_of(x)); },
       .needs = encoder,
       .meaning = "number of hidden values between the two linear layers"},
      {.name = "depth",
       .into = &keys.depth,
       .range = {.minimum = 1, .maximum = 1024},
       .needs = with_type({"rnn", "lstm", "gru", "transformer_encoder"}),
       .meaning = "number of such layers in sequence"},
      {.name = "dropout",
       .into = &keys.recurrent_dropout,
       .range = {.minimum = 0, .below = 1},
       .needs = with_type({"rnn", "lstm", "gru"}),
       .meaning = "the probability that a value is dropped between two layers; needs a `depth` above 1"},
      {.name = "bidirectional",
       .into = &keys.bidirectional,
       .needs = with_type({"rnn", "lstm", "gru"}),
       .meaning = "whether each layer also reads the sequence from its end, with weights of its own; a step "
                  "then has twice "
                  "`units` values"},
      {.name = "dropout",
       .into = &keys.transformer.dropout,
       .range = {.minimum = 0, .below = 1},
       .needs = encoder,
       .meaning =
           "the probability that an attention weight, a hidden value or a value that is added is dropped"},
      {.name = "norm_first",
       .into = &keys.transformer.norm_first,
       .needs = encoder,
       .meaning = "whether each part normalises its input, with one more norm at the end, or its output"},
      {.name = "causal",
       .into = &keys.causal,
       .needs = encoder,
       .meaning = "whether a step attends to itself and to steps before it only"},
      {.name = "activation",
       .into = &keys.transformer.activation,
       .words = layers::Activation::names(),
       .needs = encoder,
       .meaning = "activation between the two linear layers"},
  };
}

std::vector<Key> other_keys(LayerKeys& keys) {
  return {
      {.name = "scale",
       .into = &keys.scale,
       .range = window,
       .required = true,
       .needs = with_type({"upsample"}),
       .meaning = "factor of each extent"},
      {.name = "mode",
       .into = one_of(keys.smooth, {{"nearest", false}, {"linear", true}}),
       .needs = with_type({"upsample"}),
       .meaning = "`linear` interpolates along each axis"},
      {.name = "shape",
       .into = &keys.shape,
       .range = count,
       .required = true,
       .needs = with_type({"reshape"}),
       .meaning = "the extents of a sample, `[28, 28]`"},
      {.name = "layers",
       .into = &keys.layers,
       .required = true,
       .needs = with_type({"residual"}),
       .meaning = "the layers whose output is added to the shortcut"},
      {.name = "shortcut",
       .into = &keys.shortcut,
       .needs = with_type({"residual"}),
       .meaning = "the layers of the shortcut; without them, the input itself is added"},
      {.name = "activation",
       .into = &keys.activation,
       .words = activations_or_none(),
       .needs = with_type({"residual"}),
       .meaning = "activation of the sum; by default `relu`"},
  };
}

// Returns the keys of a type as "`channels`, `kernel`; `stride` 1". The required ones come first.
std::string keys_of(const std::string& type, const std::vector<Key>& keys) {
  std::vector<std::string> required;
  std::vector<std::string> others;
  for (const Key& key : keys) {
    if (std::ranges::find(key.needs.values, type) == key.needs.values.end()) continue;
    const std::string value = key.late_default.set ? "" : value_of(key);
    if (key.required)
      required.push_back(fmt::format("`{}`", key.name));
    else
      others.push_back(value.empty() ? fmt::format("`{}`", key.name)
                                     : fmt::format("`{}` {}", key.name, value));
  }
  const char* between = required.empty() || others.empty() ? "" : "; ";
  return fmt::format("{}{}{}", fmt::join(required, ", "), between, fmt::join(others, ", "));
}

}  // namespace

std::int64_t channels_of(const Shape& x) { return x.rank() > 1 ? x[1] : 1; }
std::int64_t features_of(const Shape& x) { return x.rank() > 0 ? x[x.rank() - 1] : 1; }

std::vector<Key> layer_keys(LayerKeys& keys, const LayerPlace& place) {
  std::vector<Key> all = first_keys(keys, place);
  for (const std::vector<Key>& more :
       {window_keys(keys, place), norm_keys(keys), sequence_keys(keys, place), other_keys(keys)})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string layer_types_markdown() {
  LayerKeys values;
  const std::vector<Key> keys = layer_keys(values);
  std::string table = "| `type` | keys and defaults | meaning |\n|---|---|---|\n";
  for (const LayerKind& kind : layer_kinds())
    table += fmt::format("| `{}` | {} | {} |\n", kind.type, keys_of(kind.type, keys), kind.meaning);
  return table;
}

}  // namespace plexaura
