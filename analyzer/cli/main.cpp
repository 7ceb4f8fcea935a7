#include "analyzer/cli/subcommand.h"

int main(int argc, char** argv) { return vramtrace::cli::RunCommandLine(argc, argv); }
