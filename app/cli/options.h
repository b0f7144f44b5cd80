// What was typed, as plain data: the parser fills it, the verbs read it. `out` is the file of
// report too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/exec/device.h"
#include "core/verbs/options.h"
#include "gpu/tile_transport.h"

namespace shw::cli {

struct Options : VerbOptions {
  std::string verb;
  std::string subject;  // FQN of show and map; words of ls; rule or text of explain; folder of demo
  std::vector<std::string> names;  // of stats: FQNs and patterns
  std::string world;               // "4:2", ranks that saved and that load
  std::string rows;                // "4,8", of each FSDP rank: what explain foresees
  std::int64_t tensor_parallel = 1;
  std::string fail_on = "warning";
  std::string format;  // of report; empty: by the name of the file
  std::string color = "auto";
  std::size_t threads = 0;   // 0: as many as cores
  std::size_t limit = 1000;  // values of show --values; 0 for all
  DeviceOptions device;
  TileTransport transport = TileTransport::kAuto;
  std::string paths = "absolute";  // of export-hdf5
  std::string sort;                // of ls: a column; empty: by name
  bool reverse = false;
  std::string columns;               // of ls: "tensor,shape"; empty: all
  std::vector<std::string> inputs;   // of check: more checkpoints than the first
  std::vector<std::string> ignored;  // of check: ids of rules
  bool copy = false;
  bool roll_back = false;
  bool integrity = false;
  bool accept_loss = false;  // of --fill: zeros in the place of what is lost are no failure
  bool explain = false;      // of a plan: what it takes, in words
  bool json = false;
  bool values = false;
  bool yes = false;
  bool quiet = false;
  bool plain = false;
  bool html = false;
  bool markdown = false;
};

// What ends the program before a verb runs: help, version, or a mistake.
struct EarlyExit {
  int code = 0;
  std::string out;  // for stdout
  std::string err;  // for stderr
};

std::variant<Options, EarlyExit> parse_arguments(int argc, char** argv);

// The text of `shardwright --help` and the line of `--version`.
std::string help_text();
std::string version_text();

}  // namespace shw::cli
