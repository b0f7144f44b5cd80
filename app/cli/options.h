// The parsed command line as plain data. `out` is also the output file of
// report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/exec/device.h"
#include "core/verbs/map_convert.h"
#include "core/verbs/options.h"
#include "gpu/tile_transport.h"

namespace shw::cli {

struct Options : VerbOptions {
  verbs::MapOptions mapping;
  std::string verb;
  std::string subject;  // show, map: FQN; ls: filter; explain: rule or text; demo: folder
  std::vector<std::string> names;  // stats: FQNs and patterns
  std::string world;               // "4:2": number of saving and loading ranks
  std::string rows;                // explain: "4,8", rows of each FSDP rank to predict
  std::int64_t tensor_parallel = 1;
  std::string fail_on = "warning";
  std::string processes;  // "mpi", "alone"; empty: SHARDWRIGHT_PROCESSES, or alone
  std::string format;     // report: format; empty: by file name
  std::string color = "auto";
  std::size_t threads = 0;   // 0: one per core
  std::size_t limit = 1000;  // show --values: limit; 0: all
  DeviceOptions device;
  TileTransport transport = TileTransport::kAuto;
  std::string paths = "absolute";  // export-hdf5
  std::string sort;                // ls: a column; empty: by name
  bool reverse = false;
  std::string columns;               // ls: "tensor,shape"; empty: all
  std::vector<std::string> inputs;   // check: further checkpoints; merge, average: the other inputs
  std::string weights;               // average: "0.5,0.5"
  std::int64_t lora_rank = 16;       // extract
  std::vector<std::string> views;    // report: files of saved views
  std::vector<std::string> ignored;  // check: rule ids
  std::string upload;                // "s3://bucket/prefix"
  bool round_trip = false;           // convert: converts the result back and compares it
  bool dequantise = false;           // convert: decodes quantised weights
  std::string hash_as_scheme;        // hash: "hf"
  std::string quantise;              // convert: "fp8-block"
  bool copy = false;
  bool roll_back = false;
  bool integrity = false;
  bool accept_loss = false;  // accept zeros for lost elements (--fill)
  bool explain = false;      // explain the cost of a plan
  bool json = false;
  bool values = false;
  bool by_step = false;  // stats: every step of a run
  bool places = false;   // show --json: also prints where elements are
  bool yes = false;
  bool quiet = false;
  bool plain = false;
  std::optional<double> absolute, relative;  // of diff: --atol, --rtol
  bool html = false;
  bool markdown = false;
};

// An option or argument that names a file or folder.
struct PathOption {
  const char* name;  // "--spec"; empty for an argument
  std::string* path;
};
// All paths of the options, except that of --fill from:CHECKPOINT.
std::vector<PathOption> path_options(Options& options);

inline constexpr std::string_view kFillFrom = "from:";
// CHECKPOINT of --fill from:CHECKPOINT; empty for other values.
std::string fill_source(const Options& options);

// Removes credentials in URLs from all paths, so that no message or answer has them. This process
// remembers them.
void hide_secrets(Options& options);

// Output of help, version or a usage error, before any verb runs.
struct EarlyExit {
  int code = 0;
  std::string out;  // to stdout
  std::string err;  // to stderr
};

std::variant<Options, EarlyExit> parse_arguments(int argc, char** argv);

// Output of `shardwright --help` and `--version`; with --json the latter is an answer.
std::string help_text();
std::string version_text();
std::string version_json();

}  // namespace shw::cli
