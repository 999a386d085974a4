#pragma once

#include "core/ops/cross_entropy.h"

namespace plexaura {

// Losses of classes that are composed of other ops: see cross_entropy.h.

// The cross-entropy against labels [N], or targets [N, C], with label smoothing and, unless it is empty, with
// class_weights [C].
Node composed_cross_entropy(const Operand& logits, const Operand& labels, const Node& class_weights,
                            const CrossEntropyOptions& options);

// Reduces losses [N], which are 0 for ignored labels. A mean is over the samples that are not ignored; it is 0 if there
// are none. If the options have a label to ignore, a mean of 16-bit losses is computed in float32.
Node reduce_labelled(const Node& losses, const Node& labels, const CrossEntropyOptions& options);

}  // namespace plexaura
