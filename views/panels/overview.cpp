// Summary of the checkpoint, shown if no tensor is selected: sizes per module family, and where
// findings are. Computed in the digest.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/base/natural_order.h"
#include "core/io/path_suffix.h"
#include "views/actions.h"
#include "views/line.h"
#include "views/panels/browser.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::size_t kShownShares = 8;

// "layers.3.moe.experts" and "layers.4.moe.experts" become "layers.*.moe.experts".
std::string family_of(std::string_view module) {
  std::string family;
  for (std::size_t at = 0; at <= module.size();) {
    std::size_t end = std::min(module.find('.', at), module.size());
    std::string_view word = module.substr(at, end - at);
    bool number = !word.empty() && word.find_first_not_of("0123456789") == word.npos;
    if (!family.empty()) family += '.';
    family += number ? std::string_view("*") : word;
    at = end + 1;
  }
  return family;
}

// The filter for a family: the words between its stars.
std::string filter_text_of_family(std::string_view family) {
  std::string text(family);
  std::replace(text.begin(), text.end(), '*', ' ');
  return text;
}

std::string_view state_of(std::string_view fqn) {
  std::string_view last = fqn.substr(fqn.rfind('.') + 1);
  for (std::string_view state :
       {"exp_avg_sq", "exp_avg", "step", "momentum_buffer", "master_param"})
    if (last == state) return state;
  bool optimizer = fqn.starts_with("optim") || fqn.find("optimizer") != fqn.npos;
  return optimizer ? "other optimizer state" : "weights and the rest";
}

// The layer in a name, such as "layers.3"; empty if there is none.
std::string layer_prefix_in_name(std::string_view fqn) {
  for (std::size_t at = 0; at < fqn.size();) {
    std::size_t end = std::min(fqn.find('.', at), fqn.size());
    std::string_view word = fqn.substr(at, end - at);
    if (at > 0 && !word.empty() && word.find_first_not_of("0123456789") == word.npos)
      return std::string(fqn.substr(0, end));
    at = end + 1;
  }
  return "";
}

// True for Megatron-core's tensors that stack all layers: "decoder.layers.mlp.linear_fc1.weight".
bool is_stacked(std::string_view fqn) {
  const std::size_t at = fqn.find("layers.");
  return at != fqn.npos && (at == 0 || fqn[at - 1] == '.');
}

struct Sums {
  std::map<std::string, SizeShare, std::less<>> by_name;
  void add(std::string_view name, std::string filter, double bytes, std::uint8_t mark = 0) {
    SizeShare& share = by_name.try_emplace(std::string(name)).first->second;
    if (share.tensors == 0) share.filter = std::move(filter);
    ++share.tensors;
    share.bytes += bytes;
    share.mark = std::max(share.mark, mark);
  }
  std::vector<SizeShare> all() {
    std::vector<SizeShare> shares;
    for (auto& [name, share] : by_name) {
      share.name = name;
      shares.push_back(share);
    }
    return shares;
  }
  // Largest first; the rest is summed into one entry.
  std::vector<SizeShare> sorted() {
    std::vector<SizeShare> shares = all();
    std::stable_sort(shares.begin(), shares.end(),
                     [](const SizeShare& a, const SizeShare& b) { return a.bytes > b.bytes; });
    return cut(std::move(shares));
  }
  // Sorted by layer number; if there are too many, those with most tensors.
  std::vector<SizeShare> in_order() {
    std::vector<SizeShare> shares = all();
    std::stable_sort(shares.begin(), shares.end(),
                     [](const SizeShare& a, const SizeShare& b) { return a.tensors > b.tensors; });
    shares = cut(std::move(shares));
    const bool has_rest = by_name.size() > kShownShares;
    std::sort(shares.begin(), shares.end() - (has_rest ? 1 : 0),
              [](const SizeShare& a, const SizeShare& b) { return natural_less(a.name, b.name); });
    return shares;
  }
  static std::vector<SizeShare> cut(std::vector<SizeShare> shares) {
    if (shares.size() <= kShownShares) return shares;
    SizeShare rest;
    for (std::size_t i = kShownShares - 1; i < shares.size(); ++i) {
      rest.tensors += shares[i].tensors;
      rest.bytes += shares[i].bytes;
      rest.mark = std::max(rest.mark, shares[i].mark);
    }
    rest.name = human_count(shares.size() - kShownShares + 1) + " others";
    shares.resize(kShownShares - 1);
    shares.push_back(std::move(rest));
    return shares;
  }
};

void draw_shares(Frame& frame, UiState& state, Column& column, std::string_view title,
                 const std::vector<SizeShare>& shares, bool in_bytes) {
  if (shares.empty() || (in_bytes && shares.size() == 1)) return;  // one bar compares nothing
  head(frame, column, title);
  double most = 1;
  for (const SizeShare& share : shares)
    most = std::max(most, in_bytes ? share.bytes : static_cast<double>(share.tensors));
  const ImFont *mono = frame.fonts.mono_small, *small = frame.fonts.small;
  float height = frame.px(24), value_room = text_width(small, "999,999 tensors");
  float names = std::floor(column.width() * 0.46f);
  float bar_from = column.left + names + frame.px(10), bar_to = column.right - value_room;
  std::vector<std::string_view> whole;
  for (const SizeShare& share : shares) whole.push_back(share.name);
  auto texts = elide_apart(whole, names, measure_with(mono));
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const SizeShare& share = shares[i];
    float middle = column.y + height / 2;
    ImGui::SetCursorScreenPos({column.left, column.y});
    std::string id = "overview/" + share.name;
    const bool clicked =
        row_control(frame, id.c_str(), id, {column.width(), height}, false, Tip([&] {
                      return share.name + ": " + plural(share.tensors, "tensor") +
                             (share.filter.empty() ? "." : ". A click lists them.");
                    }));
    bool lit = ImGui::IsItemHovered() && !share.filter.empty();
    if (clicked && !share.filter.empty()) {
      state.filter = share.filter;
      frame.emit(FilterCommand{share.filter});
    }
    text_from(column.draw, mono, column.left, middle,
              lit ? frame.theme.text : mix(frame.theme.quiet, frame.theme.text, 0.6f), texts[i]);
    double value = in_bytes ? share.bytes : static_cast<double>(share.tensors);
    float length = (bar_to - bar_from - frame.px(8)) * static_cast<float>(value / most);
    if (bar_to > bar_from && shares.size() > 1)
      column.draw->AddRectFilled({bar_from, middle - frame.px(4)},
                                 {bar_from + std::max(frame.px(2), length), middle + frame.px(4)},
                                 !in_bytes
                                     ? (share.mark > kFilled ? frame.theme.bad : frame.theme.warn)
                                 : lit ? frame.theme.quiet
                                       : frame.theme.control,
                                 frame.px(2));
    std::string said = in_bytes
                           ? human_bytes(static_cast<std::uint64_t>(std::min(share.bytes, 1e18)))
                           : plural(share.tensors, "tensor");
    draw_text_ending_at(column.draw, small, column.right, middle, frame.theme.quiet, said);
    focus_ring(frame, column.draw);
    column.take(height);
  }
  gap(frame, column, Gap::kLarge);
}

}  // namespace

std::shared_ptr<const Overview> make_overview(const Snapshot& snapshot,
                                              const std::vector<std::uint8_t>& marks,
                                              const FindingEffects& about, const ListModel& list) {
  auto overview = std::make_shared<Overview>();
  if (snapshot.checkpoint == nullptr) return overview;
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  Sums modules, states, dtypes, layers;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    TensorId tensor{t};
    std::string_view fqn = checkpoint.fqn(tensor);
    double bytes = static_cast<double>(volume(checkpoint.shape(tensor)).value_or(0)) *
                   size_of(checkpoint.dtype(tensor));
    std::string family = family_of(fqn.substr(0, module_length(fqn)));
    std::string filter = filter_text_of_family(family);
    modules.add(family.empty() ? "(no module)" : family, filter, bytes);
    states.add(state_of(fqn), "", bytes);
    std::string dtype(name(checkpoint.dtype(tensor)));
    dtypes.add(dtype, "dtype:" + dtype, bytes);
    if (t < marks.size() && marks[t] > 1 && marks[t] != kChangedByRepair) {
      std::string layer = layer_prefix_in_name(fqn);
      if (layer.empty()) layer = is_stacked(fqn) ? "stacked layers" : "outside of layers";
      layers.add(layer, "finding:*", bytes, marks[t]);
    }
  }
  overview->modules = modules.sorted();
  overview->states = states.sorted();
  overview->dtypes = dtypes.sorted();
  overview->layers = layers.in_order();
  if (list.names != nullptr) overview->matrices = make_matrices(snapshot, *list.names, marks);
  overview->files = make_file_overview(snapshot, about.files);
  return overview;
}

namespace {

// The folders around the checkpoint; a click lists one.
void draw_path(Frame& frame, UiState& state, Column& column) {
  std::string path = path_without_suffixes(frame.snapshot.options.checkpoint);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t name = path.rfind('/');
  if (path.find("://") != path.npos) return caption(frame, column, printable(path), Gap::kTight);
  if (name == path.npos || name == 0) return;
  constexpr std::size_t kMaxFolders = 8;
  std::vector<std::size_t> ends;  // of the folders, the innermost first
  for (std::size_t end = name; end != 0 && end != path.npos && ends.size() < kMaxFolders;
       end = path.rfind('/', end - 1))
    ends.push_back(end);
  const ImFont* font = frame.fonts.small;
  Line line(frame, column, 22, Gap::kTight);
  const bool is_whole = path.starts_with('/') && path.rfind('/', ends.back() - 1) == 0;
  const char* const root = is_whole ? "/ " : "\u2026 / ";
  line.skip(text_from(column.draw, font, line.x(), line.middle(), frame.theme.quiet, root));
  for (std::size_t i = ends.size(); i-- > 0;) {
    const std::size_t begin = path.rfind('/', ends[i] - 1);
    const std::size_t first = begin == path.npos ? 0 : begin + 1;
    const std::string folder = printable(path.substr(first, ends[i] - first));
    const float wide = text_width(font, folder);
    if (wide > line.room()) break;
    if (text_link(frame, fmt::format("overview/path/{}", i).c_str(), folder, "Lists this folder.",
                  {line.x(), line.top()}))
      open_browser(frame, state, path.substr(0, ends[i]));
    line.skip(wide + text_from(column.draw, font, line.x() + wide, line.middle(), frame.theme.quiet,
                               " / "));
  }
}

// The part of a column between two shares of its width, 0 to 1.
Column part_of(const Frame& frame, const Column& column, float from, float to) {
  const float gap = frame.px(18);
  Column part = column;
  part.left = column.left + column.width() * from + (from > 0 ? gap : 0);
  part.right = column.left + column.width() * to - (to < 1 ? gap : 0);
  return part;
}

void draw_where_findings_are(Frame& frame, UiState& state, Column& column) {
  draw_shares(frame, state, column, "FINDINGS BY LAYER", frame.digest.overview->layers, false);
  draw_file_shares(frame, state, column);
}

void draw_other_sizes(Frame& frame, UiState& state, Column& column) {
  draw_shares(frame, state, column, "BYTES BY STATE", frame.digest.overview->states, true);
  draw_shares(frame, state, column, "BYTES BY DTYPE", frame.digest.overview->dtypes, true);
}

// Matrices in the left half, which they fill, and the tables next to them.
void draw_wide_parts(Frame& frame, UiState& state, Column& column, float height) {
  const bool has_matrices = !frame.digest.overview->matrices.empty();
  Column left = part_of(frame, column, 0, has_matrices ? 0.5f : 1.0f / 3);
  Column middle =
      part_of(frame, column, has_matrices ? 0.5f : 1.0f / 3, has_matrices ? 0.75f : 2.0f / 3);
  Column right = part_of(frame, column, has_matrices ? 0.75f : 2.0f / 3, 1);
  if (has_matrices) draw_matrices(frame, state, left, height - frame.px(200));
  draw_where_findings_are(frame, state, has_matrices ? middle : left);
  draw_shares(frame, state, has_matrices ? right : middle, "BYTES BY MODULE",
              frame.digest.overview->modules, true);
  draw_other_sizes(frame, state, right);
  column.y = std::max({left.y, middle.y, right.y});
}

void draw_parts(Frame& frame, UiState& state, Column& column, float height) {
  const Overview& overview = *frame.digest.overview;
  constexpr float kWide = 1500, kTwoColumns = 720;
  if (column.width() > frame.px(kWide)) return draw_wide_parts(frame, state, column, height);
  // If nothing is marked, sizes come first.
  const bool is_marked = !overview.layers.empty() || frame.snapshot.compared != nullptr;
  if (is_marked) draw_matrices(frame, state, column, 0);
  // With one file and no finding the left column would be empty.
  const bool has_left = !overview.layers.empty() || overview.files.files.size() > 1;
  const bool two = has_left && column.width() > frame.px(kTwoColumns);
  Column left = two ? part_of(frame, column, 0, 0.5f) : column;
  Column right = part_of(frame, column, 0.5f, 1);
  draw_where_findings_are(frame, state, left);
  draw_shares(frame, state, two ? right : left, "BYTES BY MODULE", overview.modules, true);
  if (!two) right = left;
  draw_other_sizes(frame, state, right);
  column.y = std::max(left.y, right.y);
  if (!is_marked) draw_matrices(frame, state, column, 0);
}

}  // namespace

void draw_summary(Frame& frame, UiState& state, Region region) {
  const CheckpointCard& facts = *frame.digest.facts;
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  begin_region(frame, "summary", region, frame.theme.background, true);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float pad = frame.px(24);
  Column column{draw, region.min.x + pad, region.max.x - pad,
                region.min.y + frame.px(18) - ImGui::GetScrollY()};
  const std::string title = printable(short_path(frame.snapshot.options.checkpoint));
  text_line(frame, column, frame.fonts.title, frame.theme.text,
            title.empty() ? "The checkpoint" : title, Gap::kMedium);
  draw_path(frame, state, column);
  std::string line = plural(checkpoint.tensor_count(), "tensor") + " in " +
                     plural(checkpoint.chunk_count(), "tile") + ", " + facts.bytes + ", " +
                     facts.files.substr(0, facts.files.find(' ')) +
                     (facts.files.substr(0, facts.files.find(' ')) == "1" ? " file" : " files");
  if (frame.digest.mesh->ranks > 0) line += ", " + plural(frame.digest.mesh->ranks, "rank");
  const auto& dtypes = frame.digest.overview->dtypes;
  if (dtypes.size() == 1) line += ", all " + dtypes.front().name;
  paragraph(frame, column, frame.fonts.text, frame.theme.quiet,
            line + ", " + facts.format +
                ". Choose a tensor on the left, or by the arrow keys, to see its tiles.",
            Gap::kLarge);
  if (const std::string damaged =
          damaged_ranks_text(frame.digest.mesh->shares, state.panel_state.settings.ranks_per_node);
      !damaged.empty()) {
    paragraph(frame, column, frame.fonts.text, frame.theme.bad, damaged, Gap::kMedium);
  }
  draw_parts(frame, state, column, region.max.y - region.min.y);
  close_column(frame, column);
  end_region();
}

}  // namespace shw
