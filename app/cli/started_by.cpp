#include "app/cli/started_by.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string>

#include "core/io/remote/remote_path.h"

namespace shw::cli {
namespace {

std::string read_and_unset_variable(const char* name) {
  const char* text = std::getenv(name);
  std::string value = text == nullptr ? "" : text;
  ::unsetenv(name);
  return value;
}

}  // namespace

void terminate_with_parent_process() {
  const std::string parent = read_and_unset_variable("SHARDWRIGHT_PARENT");
  // A script may stand between the two; it does not pass its own end on.
  if (parent.empty() || parent != std::to_string(::getppid())) return;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (parent != std::to_string(::getppid())) ::raise(SIGTERM);  // it ended before prctl()
}

void remember_secrets_of_urls() {
  std::istringstream urls(read_and_unset_variable("SHARDWRIGHT_URLS"));
  for (std::string url; std::getline(urls, url);) without_secrets(url);
}

}  // namespace shw::cli
