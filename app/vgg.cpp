#include "app/program.h"

int main(int argc, char** argv) { return plexaura::run_program("vgg", argc, argv); }
