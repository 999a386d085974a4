#pragma once

#include "core/ops/cross_entropy.h"

namespace plexaura {

// Losses of classes that are composed of other ops: see cross_entropy.h.

// The cross-entropy against labels [N], or targets [N, C], with label smoothing and, unless it is empty, with
// class_weights [C].
Node composed_cross_entropy(const Operand& logits, const Operand& labels, const Node& class_weights,
                            const CrossEntropyOptions& options);

// Reduces losses [N], which are 0 for ignored labels. A mean is over the others; it is 0 if there are none. Losses
// of 16 bits are added up in float32 if a label is ignored.
Node reduce_labelled(const Node& losses, const Node& labels, const CrossEntropyOptions& options);

}  // namespace plexaura
