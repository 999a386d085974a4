#pragma once

#include "core/graph/op.h"
#include "core/ops/batch_norm.h"
#include "core/ops/concat.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/cummax.h"
#include "core/ops/cumsum.h"
#include "core/ops/dropout.h"
#include "core/ops/elementwise.h"
#include "core/ops/gather.h"
#include "core/ops/indexing.h"
#include "core/ops/labels.h"
#include "core/ops/linear_algebra.h"
#include "core/ops/matmul.h"
#include "core/ops/normalise_image.h"
#include "core/ops/optimizer_steps.h"
#include "core/ops/ordering.h"
#include "core/ops/pool2d.h"
#include "core/ops/pool3d.h"
#include "core/ops/random.h"
#include "core/ops/recurrence.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "core/ops/unfold.h"

namespace plexaura::testing {

template <class... Options>
struct OptionTypes {
  // Calls visit(options) with the op's options. Returns false if these have another type than those listed.
  static bool visit(const Op& op, const auto& visit) { return (visit_as<Options>(op, visit) || ...); }

 private:
  template <class Type>
  static bool visit_as(const Op& op, const auto& visit) {
    const auto* own = dynamic_cast<const OpWith<Type>*>(&op);
    if (own != nullptr) visit(own->options());
    return own != nullptr;
  }
};

// Every type of options that an op of ops.def has.
using AllOptionTypes =
    OptionTypes<AdamOptions, AlongAxisOptions, ArgCumMaxOptions, ArgSortOptions, BatchNormOptions,
                BroadcastToOptions, CastOptions, ConcatOptions, Conv2dOptions, Conv2dInputGradOptions,
                Conv2dWeightGradOptions, Conv3dOptions, Conv3dInputGradOptions, Conv3dWeightGradOptions,
                CrossEntropyOptions, CumsumOptions, DropoutDraws, DropoutGradOptions, FoldOptions,
                FunctionOptions, GatherOptions, GatherGradOptions, LuDetOptions, LuSolveOptions,
                MatMulOptions, NormaliseImageOptions, OneHotOptions, PermuteOptions, PoolOptions,
                Pool3dOptions, RandomDraws, RecurrenceOptions, ReduceOptions, ReshapeOptions, RmsOptions,
                SearchSortedOptions, SgdOptions, SliceOptions, SliceGradOptions, SoftmaxOptions,
                TakeAlongAxisGradOptions, TopKCorrectOptions, TriangularSolveOptions, UnfoldOptions>;

}  // namespace plexaura::testing
