#include "core/verbs/map_options.h"

#include "core/io/read_whole.h"

namespace shw::verbs {

Status add_map_options(const MapOptions& mapping, ModelFacts& facts) {
  if (!mapping.config.empty()) {
    const bool is_file = mapping.config.ends_with(".json");
    const std::string path = is_file ? mapping.config : mapping.config + "/config.json";
    SHW_TRY(std::string text, read_whole_text(path, std::uint64_t{4} << 20));
    facts.config.clear();
    SHW_CHECK(add_config(text, path, facts));
  }
  for (const std::string& one : mapping.set) SHW_CHECK(add_given_value(one, facts));
  return {};
}

}  // namespace shw::verbs
