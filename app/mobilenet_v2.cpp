#include "app/program.h"

int main(int argc, char** argv) { return plexaura::run_program("mobilenet_v2", argc, argv); }
