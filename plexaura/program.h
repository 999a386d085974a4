#pragma once

// run_program(): the main function of a program for a model of your own. Link plexaura::programs.

#include "app/program.h"
