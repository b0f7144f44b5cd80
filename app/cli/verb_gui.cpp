#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "app/cli/verbs.h"

namespace shw::cli {

// Replaces this process by the desktop program, which is in the same folder.
int run_gui(Context& context) {
  std::error_code code;
  auto self = std::filesystem::read_symlink("/proc/self/exe", code);
  std::string program = (self.parent_path() / "shardwright-gui").string();
  if (code || !std::filesystem::exists(program, code)) {
    return fail_with(context, {ErrorKind::kIo,
                               "the desktop program is not installed next to this one",
                               {program, {}, {}},
                               "Build it with libimgui-dev, libglfw3-dev, libegl-dev and libgl-dev "
                               "installed; `bash app/run.sh` does all this."});
  }
  std::vector<std::string> words{program};
  auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--spec", context.options.spec);
  add("--against", context.options.against);
  add("--mesh", context.options.mesh);
  if (!context.options.checkpoint.empty()) words.push_back(context.options.checkpoint);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  return fail_with(context, {ErrorKind::kIo,
                             std::string("cannot be started: ") + std::strerror(errno),
                             {program, {}, {}},
                             {}});
}

}  // namespace shw::cli
