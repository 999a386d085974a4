#pragma once

// All headers that a program needs to define a model, train it and use it.

#include "plexaura/core.h"

#include "models/config/config.h"
#include "models/layers/batch_norm2d.h"
#include "models/layers/conv2d.h"
#include "models/layers/linear.h"
#include "models/layers/pool.h"
#include "models/layers/recurrent.h"
#include "models/layers/sequential.h"
#include "models/layers/functional.h"
#include "models/predictor.h"
#include "models/zoo/model.h"
#include "models/zoo/model_kind.h"
#include "models/zoo/summary.h"
#include "training/checkpoints/checkpoint.h"
#include "training/data/tables/csv.h"
#include "training/data/idx.h"
#include "training/data/images/image_folder.h"
#include "training/data/tables/standardise.h"
#include "training/data/subset.h"
#include "training/data/tensor_dataset.h"
#include "training/programs/optimizer.h"
#include "training/loop/trainer.h"
#include "training/checkpoints/weights.h"
