#pragma once

#include "models/zoo/model.h"

namespace plexaura {

// Returns the loss of a model that reconstructs its samples, such as an autoencoder: the mean over samples and values of
// the squared errors or, with Loss::binary_cross_entropy, of the cross-entropy of the sigmoid of the outputs. In validation
// it reports "rmse", the root of the mean squared error of the reconstruction.
//   outputs [N, ...] of the model, with as many values as the samples have.
//   samples [N, ...]: images of uint8, which are reconstructed as value / 255, from 0 to 1; or floating samples of the
//   outputs' dtype, which are reconstructed as they are, and with the cross-entropy have to be from 0 to 1.
LossOutputs build_reconstruction(const Model& model, Operand outputs, Operand samples);

}  // namespace plexaura
