#pragma once

// Graphs, gradients, programs and stores: all that plexaura::core and plexaura::cpu have for a user.

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/error.h"
#include "core/graph/print.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/labels.h"
#include "core/ops/conv2d.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "core/params/module.h"
#include "core/compile/compile.h"
#include "core/vm/vm.h"
