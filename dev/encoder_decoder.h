#pragma once

namespace plexaura {

// Registers the model `encoder_decoder`, which dev/compare_pytorch times: torch.nn.Transformer, for sources and targets of
// equal shapes. Samples are [2, L, width]: the source and the target. The outputs of the decoder are [L * width].
void register_encoder_decoder();

}  // namespace plexaura
