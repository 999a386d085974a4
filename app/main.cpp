#include "app/program.h"

// The main function of the programs of all kinds of models. The build defines the name of the kind.
int main(int argc, char** argv) { return plexaura::run_program(PLEXAURA_PROGRAM, argc, argv); }
