#pragma once

#include "models/zoo/model.h"

namespace plexaura {

// Returns the loss of a model that reconstructs images, such as an autoencoder or a net that removes noise:
// the mean over samples and values of the squared errors, or of the errors of another Loss. The cross-entropy
// is that of the sigmoid of the outputs. In validation it reports "rmse", the root of the mean squared error
// of the reconstruction, and "psnr", the peak signal-to-noise ratio of values from 0 to 1 in decibels: -10
// log10 of the mean squared error over all samples, which is infinite if all outputs are exact.
//   outputs [N, ...] of the model, with as many values as the images have.
//   images [N, ...], which the model should return: of uint8, as value / 255, from 0 to 1; or floating, of the outputs'
//   dtype, as they are, and with the cross-entropy from 0 to 1.
LossOutputs build_reconstruction(const Model& model, Operand outputs, Operand images);

}  // namespace plexaura
