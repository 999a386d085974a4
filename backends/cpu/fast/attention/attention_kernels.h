#pragma once

#include <memory>

#include "backends/cpu/fast/attention/attention_kinds.h"
#include "core/device/backend.h"

namespace plexaura::fast {

// Makes the kernel of a region of attention_kinds.h, of float32 or float64, whose operands are row-major. Each thread
// computes the weights of the keys for a block of queries in its part of the workspace. Results do not depend on the
// number of threads.
std::shared_ptr<const Kernel> make_attention(const RegionQuery& query, const AttentionRegion& region);

// True if the region is faster than its ops one by one, or if it saves much memory. The gradient computes the scores and the
// softmax a second time, which takes less time only for causal attentions, of which it leaves out half. Others of many
// scores may take up to 1.2 times as long.
bool attention_pays(const AttentionRegion& region, const AttentionShape& shape);

// Returns an estimate of the seconds of this kernel, for a region that pays.
double seconds_of_attention(const AttentionRegion& region, const AttentionShape& shape);

}  // namespace plexaura::fast
