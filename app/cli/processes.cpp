#include "app/cli/processes.h"

#include <fmt/core.h>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/report/text_words.h"

namespace shw::cli {
namespace {

const char* environment(const char* name) {
  return std::getenv(name);
}

// Launcher programs by their names in /proc (at most 15 letters).
constexpr std::array<std::string_view, 9> kLauncherPrograms = {
    "mpirun", "mpiexec",         "orterun",       "orted",     "prterun",
    "prted",  "hydra_pmi_proxy", "mpiexec.hydra", "slurmstepd"};

bool is_started_by_launcher() {
  std::ifstream file(fmt::format("/proc/{}/comm", ::getppid()));
  std::string parent;
  std::getline(file, parent);
  return std::find(kLauncherPrograms.begin(), kLauncherPrograms.end(), parent) !=
         kLauncherPrograms.end();
}

bool writes_a_folder(const std::string& verb) {
  return verb == "repair" || verb == "reshard" || verb == "convert" || verb == "resume";
}

// "mpi", "alone" or empty; the option overrides the variable.
std::string requested_processes(const Options& options) {
  if (!options.processes.empty()) return options.processes;
  const char* variable = environment(kProcessesVariable);
  return variable == nullptr ? std::string() : variable;
}

}  // namespace

Launch launch_to_join(const Options& options) {
  return requested_launch(options.processes, environment);
}

Launch launch_to_join(int argc, char** argv) {
  std::string_view asked;
  constexpr std::string_view kOption = "--processes";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == kOption && i + 1 < argc) asked = argv[i + 1];
    if (word.starts_with("--processes=")) asked = word.substr(kOption.size() + 1);
  }
  return requested_launch(asked, environment);
}

std::optional<Error> check_process_options(const Options& options, const Launch& joined) {
  const std::string asked = requested_processes(options);
  if (!asked.empty() && asked != "mpi" && asked != "alone")
    return Error{ErrorKind::kUsage,
                 std::string(kProcessesVariable) + " is \"" + printable(asked) + "\"",
                 {},
                 "Use mpi or alone."};
  if (joined.size > 1 || !asked.empty() || !writes_a_folder(options.verb)) return std::nullopt;
  const Launch launched = detect_own_launch();
  if (launched.size == 1 || !is_started_by_launcher()) return std::nullopt;
  return Error{ErrorKind::kUsage,
               fmt::format("{} started {} processes, and each would write the same folder",
                           launched.by, launched.size),
               {},
               "Add `--processes mpi` to share the work, or `--processes alone` if only one of "
               "them runs shardwright."};
}

}  // namespace shw::cli
