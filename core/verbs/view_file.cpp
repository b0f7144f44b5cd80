#include "core/verbs/view_file.h"

#include <array>
#include <filesystem>
#include <utility>

#include "core/base/json.h"
#include "core/io/path_text.h"
#include "core/io/publish.h"
#include "core/io/read_whole.h"
#include "core/io/remote/remote_path.h"
#include "core/verbs/new_file.h"
#include "core/verbs/output_place.h"
#include "core/verbs/place_mark.h"
#include "core/verbs/run/newest_step.h"

namespace shw::verbs {
namespace {

using ViewJson = nlohmann::json;

constexpr const char* kViewSchema = "shardwright-view/1";
constexpr std::uint64_t kMaxViewBytes = std::uint64_t{1} << 20;

struct ViewKey {
  const char* key;
  std::string SavedView::*member;
  bool is_path;
};
constexpr std::array<ViewKey, 7> kKeys{{{"checkpoint", &SavedView::checkpoint, true},
                                        {"spec", &SavedView::spec, true},
                                        {"against", &SavedView::against, true},
                                        {"mesh", &SavedView::mesh, false},
                                        {"tensor", &SavedView::tensor, false},
                                        {"tile", &SavedView::tile, false},
                                        {"finding", &SavedView::finding, false}}};

tl::unexpected<Error> invalid_view_error(const std::string& path, std::string why) {
  return fail(ErrorKind::kDamaged, "is not a saved view: " + std::move(why), {path});
}

std::string resolve_against_folder(const std::string& folder, const std::string& path) {
  if (path.empty() || is_remote(path) || path.starts_with('/')) return path;
  return folder + "/" + path;
}

std::string absolute(const std::string& path) {
  if (path.empty() || is_remote(path)) return without_secrets(path);
  std::error_code failed;
  const auto whole = std::filesystem::absolute(path, failed);
  return failed ? path : whole.lexically_normal().string();
}

// False if the list is not one of pins.
bool read_pins(const ViewJson& list, std::vector<Pin>& pins) {
  if (!list.is_array() || list.size() > kMaxPins) return false;
  for (const ViewJson& one : list) {
    if (!one.is_object() || !one.contains("tensor")) return false;
    Pin pin;
    for (auto [key, member] : {std::pair{"tensor", &Pin::tensor}, std::pair{"tile", &Pin::tile},
                               std::pair{"note", &Pin::note}}) {
      const auto found = one.find(key);
      if (found == one.end()) continue;
      if (!found->is_string()) return false;
      pin.*member = found->get<std::string>();
    }
    pins.push_back(std::move(pin));
  }
  return true;
}

ViewJson pins_to_json(const std::vector<Pin>& pins) {
  ViewJson list = ViewJson::array();
  for (const Pin& pin : pins)
    list.push_back({{"tensor", pin.tensor}, {"tile", pin.tile}, {"note", pin.note}});
  return list;
}

}  // namespace

bool is_view_file(const std::string& path) {
  std::error_code failed;
  return path.ends_with(kViewEnding) && std::filesystem::is_regular_file(path, failed);
}

Result<SavedView> read_view_file(const std::string& path) {
  SHW_TRY(auto source, open_file(path, path));
  SHW_TRY(const std::string text, read_whole_text(*source, kMaxViewBytes));
  const auto parsed = parse_json<ViewJson>(text);
  if (!parsed.problem.empty()) return invalid_view_error(path, parsed.problem);
  const ViewJson& json = parsed.tree;
  if (!json.is_object() || !json.contains("schema") || json["schema"] != kViewSchema)
    return invalid_view_error(path, std::string("\"schema\" is not ") + kViewSchema);
  SavedView view;
  for (const ViewKey& one : kKeys) {
    const auto found = json.find(one.key);
    if (found == json.end()) continue;
    if (!found->is_string()) return invalid_view_error(path, std::string(one.key) + " is not text");
    view.*one.member = found->get<std::string>();
    if (one.is_path) view.*one.member = resolve_against_folder(parent_of(path), view.*one.member);
  }
  if (view.checkpoint.empty()) return invalid_view_error(path, "it names no checkpoint");
  if (json.contains("pins") && !read_pins(json["pins"], view.pins))
    return invalid_view_error(path, "\"pins\" is not a list of positions");
  const auto depth = json.find("depth");
  for (Depth one : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
    if (depth != json.end() && *depth == std::string(name(one))) view.depth = one;
  }
  if (depth != json.end() && !view.depth) return invalid_view_error(path, "its depth is none");
  return view;
}

std::optional<PageView> page_view(const Checkpoint& checkpoint, const SavedView& view) {
  const auto tensor = checkpoint.find(view.tensor);
  if (!tensor) return std::nullopt;
  PageView page{*tensor, {}, view.finding};
  if (!view.tile.empty()) page.tile = tile_of_mark(checkpoint, *tensor, view.tile);
  return page;
}

Result<std::vector<PageView>> read_page_views(const Opened& opened, const VerbOptions& verb_options,
                                              std::span<const std::string> files) {
  std::vector<PageView> pages;
  for (const std::string& file : files) {
    SHW_TRY(const SavedView view, read_view_file(file));
    if (resolved_path(view.checkpoint) != resolved_path(verb_options.checkpoint))
      return fail(ErrorKind::kUsage, "is a view of a different checkpoint: " + view.checkpoint,
                  {absolute(file)});
    auto page = page_view(*opened.checkpoint, view);
    if (!page)
      return fail(ErrorKind::kUsage, "is a view of a tensor that is not in this checkpoint",
                  {absolute(file), {}, view.tensor});
    pages.push_back(std::move(*page));
  }
  return pages;
}

Result<WrittenReport> write_view_file(Store& store, const Opened& opened,
                                      const VerbOptions& verb_options, SavedView view,
                                      const std::string& path) {
  SHW_TRY(std::string place,
          free_path(store, place_request(NewFile::kView, verb_options.checkpoint, {}, path)));
  SHW_CHECK(check_output_place(opened, verb_options, place));
  ViewJson json = {{"schema", kViewSchema}};
  for (const ViewKey& one : kKeys) {
    const std::string& text = view.*one.member;
    if (!text.empty()) json[one.key] = one.is_path ? absolute(text) : text;
  }
  if (view.depth) json["depth"] = name(*view.depth);
  if (!view.pins.empty()) json["pins"] = pins_to_json(view.pins);
  const std::string text = json.dump(2, ' ', false, ViewJson::error_handler_t::replace) + "\n";
  return write_new_text(store, place, text);
}

}  // namespace shw::verbs
