// A view of the desktop as a small JSON file: the open checkpoints, tensor, tile and finding, so
// that a colleague who opens it sees the same.
//
//   {"schema": "shardwright-view/1", "checkpoint": PATH, "spec": PATH, "against": PATH,
//    "mesh": "dp=4,tp=2", "depth": "data", "tensor": FQN, "tile": MARK, "finding": MARK,
//    "pins": [{"tensor": FQN, "tile": MARK, "note": TEXT}, ...]}
//
// All but the first two may be missing. Relative paths are relative to the file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/facts/depth.h"
#include "core/io/store.h"
#include "core/verbs/ui_report.h"
#include "core/verbs/verbs.h"
#include "core/verbs/view_ending.h"

namespace shw::verbs {

// A place with a note; the tile's mark may be empty.
struct Pin {
  std::string tensor, tile = {}, note = {};
  bool operator==(const Pin&) const = default;
};
inline constexpr std::size_t kMaxPins = 1000;

struct SavedView {
  std::string checkpoint, spec = {}, against = {}, mesh = {};
  std::optional<Depth> depth = {};
  std::string tensor = {}, tile = {}, finding = {};  // marks: core/verbs/place_mark.h
  std::vector<Pin> pins = {};
  bool operator==(const SavedView&) const = default;
};

// A regular file with that ending: not a checkpoint.
bool is_view_file(const std::string& path);
// kDamaged with the position if it is not a view.
Result<SavedView> read_view_file(const std::string& path);

// The view as a page draws it; nullopt without a tensor of this checkpoint.
std::optional<PageView> page_view(const Checkpoint& checkpoint, const SavedView& view);
// The views in these files. kUsage for a view of another checkpoint, or of no tensor of this one.
Result<std::vector<PageView>> read_page_views(const Opened& opened, const VerbOptions& verb_options,
                                              std::span<const std::string> files);

// `path` is as in PlaceRequest; the view contains absolute paths. Never replaces a file.
Result<WrittenReport> write_view_file(Store& store, const Opened& opened,
                                      const VerbOptions& verb_options, SavedView view,
                                      const std::string& path);

}  // namespace shw::verbs
