#pragma once

// Tests of gradients: check_gradients(), check_parameters(), find_dead_gradients(), and random tensors. Link
// plexaura::testing.

#include "testing/check_gradients.h"
#include "testing/check_loss.h"
#include "testing/check_parameters.h"
#include "testing/dead_gradients.h"
#include "testing/values.h"
