#include "dev/layer_cases.h"

#include "models/layers/attention.h"
#include "models/layers/batch_norm.h"
#include "models/layers/convolution.h"
#include "models/layers/embedding.h"
#include "models/layers/linear.h"
#include "models/layers/normalisation.h"
#include "models/layers/recurrent.h"
#include "models/layers/sequential.h"
#include "models/layers/transformer.h"

namespace plexaura {

namespace {

using namespace layers;

using Inputs = std::vector<Node>;

// Returns the case of a layer that is called with the first input alone.
template <class L>
LayerCase plain(const char* name, L&& made, Mode mode = Mode::inference) {
  const auto layer = std::make_shared<L>(std::forward<L>(made));
  return {name, layer, [layer](const Inputs& inputs) { return (*layer)(inputs[0]); }, mode};
}

template <class L, class Call>
LayerCase called(const char* name, L&& made, const Call& call) {
  const auto layer = std::make_shared<L>(std::forward<L>(made));
  return {name, layer, [layer, call](const Inputs& inputs) { return call(*layer, inputs); }};
}

Sequential sequence() {
  Sequential net;
  net.append<Linear>(5, 7);
  net.append<Activation>("gelu");
  net.append<LayerNorm>(7);
  net.append<Linear>(7, 3, LinearOptions{.bias = false});
  return net;
}

std::vector<LayerCase> of_images() {
  std::vector<LayerCase> cases;
  cases.push_back(plain("conv1d", Conv1d(4, 6, 3, {.stride = 2, .padding = 1, .groups = 2})));
  cases.push_back(plain("conv2d", Conv2d(4, 6, {3, 2}, {.padding = {1, 2}, .dilation = 2})));
  cases.push_back(plain("conv3d", Conv3d(4, 6, {1, 2, 3}, {.stride = {1, 2, 1}, .bias = false})));
  cases.push_back(
      plain("conv_transpose1d",
            ConvTranspose1d(4, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2})));
  cases.push_back(plain("conv_transpose2d", ConvTranspose2d(4, 6, {3, 2}, {.stride = {2, 3}})));
  cases.push_back(plain("conv_transpose3d", ConvTranspose3d(4, 6, 2, {.padding = 1, .dilation = 2})));
  cases.push_back(plain("batch_norm1d", BatchNorm1d(4)));
  cases.push_back(plain("batch_norm1d.train", BatchNorm1d(4), Mode::train));
  cases.push_back(plain("batch_norm2d.train", BatchNorm2d(4, {.momentum = 0.3}), Mode::train));
  cases.push_back(plain("batch_norm3d.train", BatchNorm3d(4), Mode::train));
  cases.push_back(plain("batch_norm2d.frozen", BatchNorm2d(4, {.frozen = true}), Mode::train));
  cases.push_back(plain("group_norm", GroupNorm(2, 4)));
  cases.push_back(plain("instance_norm1d", InstanceNorm1d(4)));
  cases.push_back(plain("instance_norm2d", InstanceNorm2d(4, {.affine = true})));
  return cases;
}

std::vector<LayerCase> of_sequences() {
  std::vector<LayerCase> cases;
  cases.push_back(plain("linear", Linear(5, 7)));
  cases.push_back(plain("embedding", Embedding(9, 5, {.padding = 2})));
  cases.push_back(plain("layer_norm", LayerNorm(5)));
  cases.push_back(plain("layer_norm.axes", LayerNorm(Shape{3, 5}, {.epsilon = 0.1})));
  cases.push_back(plain("layer_norm.no_bias", LayerNorm(5, {.bias = false})));
  cases.push_back(plain("layer_norm.plain", LayerNorm(5, {.weight = false, .bias = false})));
  cases.push_back(plain("rms_norm", RmsNorm(5)));
  cases.push_back(plain("sequential", sequence()));
  cases.push_back(plain("rnn", Rnn(5, 7, {.layers = 2})));
  cases.push_back(plain("lstm", Lstm(5, 7, {.layers = 2})));
  cases.push_back(plain("gru", Gru(5, 7, {.bias = false})));
  cases.push_back(plain("rnn.bidirectional", Rnn(5, 7, {.bidirectional = true})));
  cases.push_back(plain("lstm.bidirectional", Lstm(5, 7, {.layers = 2, .bidirectional = true})));
  cases.push_back(plain("gru.bidirectional", Gru(5, 7, {.layers = 2, .bidirectional = true})));
  return cases;
}

Node attend(const MultiheadAttention& layer, const Inputs& in) { return layer(in[0], in[1], in[1]); }
Node attend_to_keys(const MultiheadAttention& layer, const Inputs& in) {
  return layer(in[0], in[1], in[1], {.keys = in[2]});
}
Node attend_masked(const MultiheadAttention& layer, const Inputs& in) {
  return layer(in[0], {.mask = in[1]});
}

template <class Encoder>
Node encode(const Encoder& layer, const Inputs& in) {
  return layer(in[0], {.keys = in[1]});
}
template <class Encoder>
Node encode_causally(const Encoder& layer, const Inputs& in) {
  return layer(in[0], {.is_causal = true});
}
template <class Decoder>
Node decode(const Decoder& layer, const Inputs& in) {
  return layer(in[0], in[1], {.self = {.is_causal = true}});
}

Node translate(const Transformer& layer, const Inputs& in) {
  return layer(in[0], in[1], {.target = {.self = {.is_causal = true}}});
}

std::vector<LayerCase> of_attention() {
  const TransformerOptions after{.feedforward = 11};
  const TransformerOptions first{.feedforward = 11, .activation = "gelu", .norm_first = true};
  const TransformerOptions no_bias{.feedforward = 11, .bias = false};
  std::vector<LayerCase> cases;
  cases.push_back(plain("attention", MultiheadAttention(6, 3)));
  cases.push_back(called("attention.cross", MultiheadAttention(6, 3, {.bias = false}), attend));
  cases.push_back(called("attention.keys", MultiheadAttention(6, 3), attend_to_keys));
  cases.push_back(called("attention.mask", MultiheadAttention(6, 3), attend_masked));
  cases.push_back(
      called("encoder_layer", TransformerEncoderLayer(6, 3, after), encode<TransformerEncoderLayer>));
  cases.push_back(called("encoder_layer.norm_first", TransformerEncoderLayer(6, 3, first),
                         encode_causally<TransformerEncoderLayer>));
  cases.push_back(plain("encoder_layer.no_bias", TransformerEncoderLayer(6, 3, no_bias)));
  cases.push_back(
      called("decoder_layer", TransformerDecoderLayer(6, 3, after), decode<TransformerDecoderLayer>));
  cases.push_back(called("decoder_layer.norm_first", TransformerDecoderLayer(6, 3, first),
                         decode<TransformerDecoderLayer>));
  cases.push_back(
      called("encoder", TransformerEncoder(2, 6, 3, first, LayerNorm(6)), encode<TransformerEncoder>));
  cases.push_back(
      called("decoder", TransformerDecoder(2, 6, 3, after, LayerNorm(6)), decode<TransformerDecoder>));
  cases.push_back(
      called("transformer", Transformer(6, 3, {.encoder_layers = 2, .decoder_layers = 1}, first), translate));
  return cases;
}

}  // namespace

std::vector<LayerCase> layer_cases() {
  std::vector<LayerCase> cases = of_images();
  for (auto* more : {of_sequences, of_attention})
    for (LayerCase& each : more()) cases.push_back(std::move(each));
  return cases;
}

}  // namespace plexaura
