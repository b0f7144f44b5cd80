// The paths among the options of a command.
#include "app/cli/options.h"
#include "core/io/remote/remote_path.h"

namespace shw::cli {

std::vector<PathOption> path_options(Options& options) {
  std::vector<PathOption> paths = {
      {"", &options.checkpoint},       {"--spec", &options.spec},
      {"--plan", &options.plan},       {"--baseline", &options.baseline},
      {"--policy", &options.policy},   {"--placements", &options.placements},
      {"--against", &options.against}, {"--config", &options.mapping.config},
      {"--map", &options.mapping.map}, {"--out", &options.out},
      {"--upload", &options.upload},   {"--order", &options.mapping.order}};
  for (std::string& input : options.inputs) paths.push_back({"", &input});
  for (std::string& view : options.views) paths.push_back({"--view", &view});
  return paths;
}

std::string fill_source(const Options& options) {
  return options.fill.starts_with(kFillFrom) ? options.fill.substr(kFillFrom.size())
                                             : std::string();
}

void hide_secrets(Options& options) {
  for (const PathOption& option : path_options(options))
    *option.path = without_secrets(*option.path);
  if (const std::string source = fill_source(options); !source.empty())
    options.fill = std::string(kFillFrom) + without_secrets(source);
  // A URL in the place of a tensor is quoted in "there is no tensor ...".
  options.subject = text_without_secrets(options.subject);
  for (std::string& name : options.names) name = text_without_secrets(name);
}

}  // namespace shw::cli
