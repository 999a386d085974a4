#pragma once

// A program of several ranks: run_ranks(), make_strategy(), check_agreement() and Roles. Link plexaura::models, or
// plexaura::distributed.

#include "distributed/communicator/handshake.h"
#include "distributed/communicator/roles.h"
#include "distributed/communicator/run_ranks.h"
#include "distributed/strategies/strategies.h"
