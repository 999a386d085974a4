#include "dev/encoder_decoder.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "models/layers/transformer.h"
#include "models/zoo/model.h"
#include "models/zoo/model_kind.h"

namespace plexaura {

namespace {

struct EncoderDecoderOptions {
  std::int64_t heads = 4;
  std::int64_t depth = 2;  // number of layers of the encoder, and of the decoder
  std::int64_t feedforward = 512;
};

class EncoderDecoder final : public Model {
 public:
  EncoderDecoder(ModelInfo info, const EncoderDecoderOptions& options)
      : Model(std::move(info)),
        transformer_(sample_shape()[2], options.heads,
                     {.encoder_layers = options.depth, .decoder_layers = options.depth},
                     {.feedforward = options.feedforward, .dropout = 0}) {}

  void members(MemberVisitor& visit) override { visit("transformer", transformer_); }

 protected:
  Node forward(Operand x) const override {
    const std::int64_t samples = x.node().shape()[0];
    const std::int64_t length = sample_shape()[1];
    const std::int64_t width = sample_shape()[2];
    const auto part = [&](std::int64_t index) {
      return reshape(slice(x, {.axis = 1, .start = index, .stop = index + 1}), {samples, length, width});
    };
    return reshape(transformer_(part(0), part(1), {.target = {.self = {.is_causal = true}}}),
                   {samples, length * width});
  }

 private:
  layers::Transformer transformer_;
};

std::vector<Key> encoder_decoder_keys(EncoderDecoderOptions& options) {
  return {{.name = "heads", .into = &options.heads, .range = {.minimum = 1}},
          {.name = "depth", .into = &options.depth, .range = {.minimum = 1}},
          {.name = "feedforward", .into = &options.feedforward, .range = {.minimum = 1}}};
}

}  // namespace

void register_encoder_decoder() {
  register_model("encoder_decoder",
                 model_kind(encoder_decoder_keys,
                            [](ModelInfo info, const EncoderDecoderOptions& options, const Section&) {
                              return std::make_unique<EncoderDecoder>(std::move(info), options);
                            }));
}

}  // namespace plexaura
