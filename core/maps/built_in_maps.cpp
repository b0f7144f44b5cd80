#include "core/maps/built_in_maps.h"

#include "core/io/read_whole.h"

namespace shw {
namespace {

// One text per file of assets/maps, which the build includes here.
constexpr std::string_view kMapTexts[] = {
#include "maps.inc"
};

}  // namespace

const std::vector<ModelMap>& built_in_maps() {
  static const std::vector<ModelMap> maps = [] {
    std::vector<ModelMap> out;
    for (std::string_view text : kMapTexts) {
      auto map = model_map_from_json(text, "a map of this program");
      if (map) out.push_back(std::move(*map));
    }
    return out;
  }();
  return maps;
}

Result<ModelMap> map_named(const std::string& name) {
  std::string names;
  for (const ModelMap& map : built_in_maps()) {
    if (map.name == name) return map;
    names += (names.empty() ? "" : ", ") + map.name;
  }
  auto source = open_file(name, name);
  if (!source) {
    Error error = std::move(source).error();
    error.advice = "--map takes a file, or one of the maps of this program: " + names;
    return tl::unexpected<Error>(std::move(error));
  }
  SHW_TRY(std::string text, read_whole_text(**source, std::uint64_t{16} << 20));
  return model_map_from_json(text, name);
}

}  // namespace shw
