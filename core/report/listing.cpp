#include "core/report/listing.h"
#include "core/tensor/element_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/checked.h"
#include "core/facts/storage/filled.h"
#include "core/facts/storage/missing_data.h"
#include "core/model/index_only_tensors.h"
#include "core/repair/run/estimate_text.h"
#include "core/report/report.h"
#include "core/report/text.h"
#include "core/rules/unreadable.h"

namespace shw {

std::string inked(const TextStyle& style, Ink ink, std::string_view text) {
  if (!style.colour || ink == Ink::kPlain) return std::string(text);
  const char* code = "";
  switch (ink) {
    case Ink::kPlain:
      break;
    case Ink::kQuiet:
      code = "\x1b[2m";
      break;
    case Ink::kBold:
      code = "\x1b[1m";
      break;
    case Ink::kRed:
      code = "\x1b[1;31m";
      break;
    case Ink::kGreen:
      code = "\x1b[32m";
      break;
    case Ink::kGold:
      code = "\x1b[33m";
      break;
  }
  return code + std::string(text) + "\x1b[0m";
}

std::string ranks_to_text(std::vector<std::uint32_t> ranks) {
  if (ranks.empty()) return "none";
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(ranks[i]);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? ", " : "-", ranks[last]);
    i = last + 1;
  }
  return text;
}

std::vector<std::uint32_t> writers_of(const Checkpoint& checkpoint, TensorId tensor) {
  std::vector<std::uint32_t> ranks;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    if (auto rank = checkpoint.writer(chunk)) ranks.push_back(*rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::uint64_t bytes_of(const Checkpoint& checkpoint, TensorId tensor) {
  auto elements = volume(checkpoint.shape(tensor));
  if (!elements) return 0;
  auto bytes = checked_mul(static_cast<std::uint64_t>(*elements),
                           std::uint64_t{size_of(checkpoint.dtype(tensor))});
  return bytes.value_or(0);
}

namespace {

struct ListedRow {
  std::string cells[kListColumns];
  std::string filled;
};

// Sum of lost and filled elements as one line; empty if there are none.
std::string filled_sum(const FilledReport& filled) {
  std::int64_t lost = 0;
  for (const FilledTensor& tensor : filled.tensors) lost += tensor.lost;
  std::string text;
  if (lost != 0)
    text = human_count(static_cast<std::uint64_t>(lost)) + " elements lost and filled in " +
           plural(filled.tensors.size(), "tensor");
  if (!filled.entries.empty()) {
    text += (text.empty() ? "" : ", ") + plural(filled.entries.size(), "entry") +
            " replaced by another";
  }
  return text;
}

// ", stored as GGUF Q4_K"; empty for the format's usual codec.
std::string stored_as_text(const Checkpoint& checkpoint, TensorId tensor) {
  const std::string_view stored = stored_as(checkpoint, tensor);
  return stored.empty() ? "" : ", stored as " + std::string(stored);
}

ListedRow listed_row(const Checkpoint& checkpoint, TensorId tensor) {
  std::uint64_t gone = missing_chunk_count(checkpoint, tensor);
  std::string tiles = human_count(checkpoint.chunks(tensor).size());
  if (gone != 0) tiles += ", " + human_count(gone) + " gone";
  return {{printable(checkpoint.fqn(tensor)), to_text(checkpoint.shape(tensor)),
           std::string(name(checkpoint.dtype(tensor))), tiles,
           human_bytes(bytes_of(checkpoint, tensor)), ranks_to_text(writers_of(checkpoint, tensor)),
           ""},
          {}};
}

// Row of an unreadable tensor of which only the name is known.
ListedRow listed_row(const UnclaimedStorageRecord& tensor) {
  return {{printable(tensor.fqn), "?", "?", "gone", "?", "?", ""}, {}};
}

// Cuts the text to the width and marks the cut in the last column.
std::string shortened(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return text;
  std::string out;
  std::size_t columns = 0;
  for (char c : text) {
    bool begins = (static_cast<unsigned char>(c) >> 6) != 2;
    if (begins && ++columns == width) break;
    out += c;
  }
  return out + "\u2026";
}

std::string separator(const TextStyle& style) {
  return style.utf8 ? " · " : ", ";
}

constexpr const char* kTitles[kListColumns] = {"tensor", "shape",   "dtype",    "tiles",
                                               "bytes",  "writers", "quantised"};
constexpr std::size_t kQuantisedColumn = 6;
constexpr std::size_t kAllColumns[kListColumns] = {0, 1, 2, 3, 4, 5, kQuantisedColumn};

bool is_left_aligned(std::size_t column) {
  return column < 3 || column >= 5;
}

// Text lines of the visible columns; the last column keeps its own width.
struct ListLines {
  std::span<const std::size_t> columns;
  std::size_t widths[kListColumns] = {};
  std::size_t room = 0;
  bool fits = true;  // otherwise names have their own lines above the other columns

  ListLines(std::span<const ListedRow> rows, std::span<const std::size_t> shown,
            const TextStyle& style)
      : columns(shown), room(static_cast<std::size_t>(style.width)) {
    std::size_t sum = 0;
    for (std::size_t c : columns) {
      widths[c] = std::string_view(kTitles[c]).size();
      for (const ListedRow& row : rows)
        widths[c] = std::max(widths[c], display_width(row.cells[c]));
      sum += widths[c] + 2;
    }
    fits = !style.must_fit || sum <= room + 2;
  }

  template <typename Cell>
  std::string cells(std::span<const std::size_t> shown, Cell cell) const {
    std::string text;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const std::size_t c = shown[i];
      if (i != 0) text += "  ";
      text += i + 1 == shown.size() ? std::string(cell(c))
              : is_left_aligned(c)  ? padded(cell(c), widths[c])
                                    : right_aligned(cell(c), widths[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

  template <typename Cell>
  std::string line(Cell cell, const TextStyle& style, Ink ink) const {
    if (fits || columns.size() < 2) return inked(style, ink, cells(columns, cell)) + "\n";
    const std::string rest = "  " + cells(columns.subspan(1), cell);
    return inked(style, ink, cell(columns.front())) + "\n" +
           inked(style, Ink::kQuiet, shortened(rest, room)) + "\n";
  }
};

std::vector<ListedRow> listed_rows(const Checkpoint& checkpoint,
                                   std::span<const std::uint32_t> order,
                                   const FilledReport& filled) {
  std::vector<ListedRow> rows;
  rows.reserve(order.size());
  std::map<std::string_view, const FilledTensor*> losses;
  for (const FilledTensor& tensor : filled.tensors) losses[tensor.fqn] = &tensor;
  for (std::uint32_t index : order) {
    rows.push_back(listed_row(checkpoint, TensorId{index}));
    auto loss = losses.find(checkpoint.fqn(TensorId{index}));
    if (loss != losses.end()) rows.back().filled = printable(filled_elements_text(*loss->second));
  }
  return rows;
}

// "FP8, 2 tensors" next to a stored weight, and "FP8, a part" next to its scales. True where one is
// listed.
bool label_quantised_rows(std::span<const QuantisedWeight> quantised,
                          std::span<const std::uint32_t> order, std::vector<ListedRow>& rows) {
  std::map<TensorId, std::string> words;
  for (const QuantisedWeight& weight : quantised) {
    for (TensorId part : weight.tensors) words[part] = weight.scheme + ", a part";
    words[weight.tensors.front()] = weight.scheme + ", " + plural(weight.tensors.size(), "tensor");
  }
  bool any = false;
  for (std::size_t i = 0; i < order.size() && i < rows.size(); ++i) {
    auto found = words.find(TensorId{order[i]});
    if (found == words.end()) continue;
    rows[i].cells[kQuantisedColumn] = found->second;
    any = true;
  }
  return any;
}

std::span<const std::size_t> all_columns(bool has_quantised) {
  return std::span(kAllColumns).first(has_quantised ? kListColumns : kQuantisedColumn);
}

}  // namespace

std::span<const char* const, kListColumns> list_titles() {
  return kTitles;
}

std::string list_to_text(const Checkpoint& checkpoint, std::span<const std::uint32_t> order,
                         const TextStyle& style, std::span<const std::size_t> columns,
                         std::span<const QuantisedWeight> quantised) {
  const FilledReport filled = filled_report_of(checkpoint);
  std::vector<ListedRow> rows = listed_rows(checkpoint, order, filled);
  const bool has_quantised = label_quantised_rows(quantised, order, rows);
  const bool all = order.size() == checkpoint.tensor_count();
  const std::size_t named = all ? index_only_tensors(checkpoint).size() : 0;
  for (std::size_t i = 0; i < named; ++i)
    rows.push_back(listed_row(index_only_tensors(checkpoint)[i]));
  const ListLines lines(rows, columns.empty() ? all_columns(has_quantised) : columns, style);
  std::string text;
  if (style.must_fit)
    text = lines.line([&](std::size_t c) { return std::string(kTitles[c]); }, style, Ink::kQuiet);
  for (const ListedRow& row : rows) {
    std::string cells = lines.line([&](std::size_t c) { return row.cells[c]; }, style, Ink::kPlain);
    if (!row.filled.empty()) {
      cells.pop_back();
      cells += "   " + inked(style, Ink::kGold, row.filled) + "\n";
    }
    text += cells;
  }
  std::uint64_t bytes = 0;
  for (std::uint32_t index : order) bytes += bytes_of(checkpoint, TensorId{index});
  std::string sum = plural(order.size(), "tensor");
  if (named != 0) sum += " and " + human_count(named) + " known by name alone, gone with a file";
  if (!all) sum += " of " + human_count(checkpoint.tensor_count());
  text += inked(style, Ink::kQuiet, sum + separator(style) + human_bytes(bytes)) + "\n";
  std::string lost = filled_sum(filled);
  return lost.empty() ? text : text + inked(style, Ink::kGold, lost) + "\n";
}

namespace {

std::string value_lines(const TensorValues& values, std::size_t limit, const TextStyle& style) {
  std::size_t size = std::max<std::size_t>(1, size_of(values.dtype));
  const std::size_t held = values.bytes.size() / size;
  const auto count = static_cast<std::size_t>(volume(values.shape).value_or(0));
  const std::size_t shown = limit == 0 ? held : std::min(held, limit);
  std::string text, line;
  for (std::size_t i = 0; i < shown; ++i) {
    std::string value = element_text(values.dtype, values.bytes, i);
    if (!line.empty() && line.size() + value.size() + 1 > static_cast<std::size_t>(style.width)) {
      text += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + value;
  }
  text += line + "\n";
  if (shown < count) {
    text += inked(style, Ink::kQuiet, human_count(count - shown) + " more (--limit 0 shows all)") +
            "\n";
  }
  return text;
}

}  // namespace

std::string filled_to_text(const Checkpoint& checkpoint, TensorId tensor, const TextStyle& style) {
  FilledReport report = filled_report_of(checkpoint);
  const FilledTensor* filled = report.find(checkpoint.fqn(tensor));
  if (filled == nullptr) return "";
  constexpr std::size_t kShown = 8;
  std::string text = filled_elements_text(*filled) + ":";
  for (std::size_t i = 0; i < std::min(kShown, filled->boxes.size()); ++i)
    text += " " + to_text(filled->boxes[i]);
  if (filled->boxes.size() > kShown)
    text += " and " + human_count(filled->boxes.size() - kShown) + " more boxes";
  if (filled->boxes.empty()) text += " where, no record says";
  return inked(style, Ink::kGold, printable(text)) + "\n";
}

std::string_view stored_as(const Checkpoint& checkpoint, TensorId tensor) {
  const auto chunks = checkpoint.chunks(tensor);
  const Codec* usual = checkpoint.format().codec;
  if (chunks.empty() || usual == nullptr) return {};
  const Codec& codec = checkpoint.codec(chunks[0]);
  return codec.name == usual->name ? std::string_view() : codec.name;
}

std::string tensor_to_text(const Checkpoint& checkpoint, TensorId tensor,
                           const TensorValues* values, std::size_t limit, const TextStyle& style) {
  auto chunks = checkpoint.chunks(tensor);
  std::string text = inked(style, Ink::kBold, printable(checkpoint.fqn(tensor))) + "\n";
  text += to_text(checkpoint.shape(tensor)) + separator(style) +
          std::string(name(checkpoint.dtype(tensor))) + stored_as_text(checkpoint, tensor) +
          separator(style) + human_bytes(bytes_of(checkpoint, tensor)) + separator(style) +
          plural(chunks.size(), "tile") + separator(style) + "writers " +
          ranks_to_text(writers_of(checkpoint, tensor)) + "\n" +
          filled_to_text(checkpoint, tensor, style) + "\n";
  if (values != nullptr) return text + value_lines(*values, limit, style);
  std::size_t box_width = 4;
  for (ChunkId chunk : chunks) {
    Box box = box_of(checkpoint, chunk);
    box_width = std::max(box_width, to_text(box).size());
  }
  text += inked(style, Ink::kQuiet, padded("tile", box_width) + "  writer  place") + "\n";
  for (ChunkId chunk : chunks) {
    Box box = box_of(checkpoint, chunk);
    auto writer = checkpoint.writer(chunk);
    auto item = checkpoint.item(chunk);
    text += fmt::format("{}  {}  ", padded(to_text(box), box_width),
                        right_aligned(writer ? std::to_string(*writer) : "?", 6));
    if (item) {
      text += fmt::format("{} at {}, {} bytes", printable(checkpoint.file(item->file).path),
                          item->offset, item->length);
      std::string_view gone = missing_data_reason(checkpoint, chunk);
      if (!gone.empty()) text += "  " + inked(style, Ink::kRed, "gone: " + std::string(gone));
      text += "\n";
    } else {
      text += inked(style, Ink::kRed, "nowhere: no storage record") + "\n";
    }
  }
  return text;
}

namespace {

// The first names, and the number of others.
std::string subjects_text(const std::vector<std::string>& subjects) {
  static constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(subjects.size(), kShown); ++i)
    text += "     " + printable(subjects[i]) + "\n";
  if (subjects.size() > kShown)
    text += "     and " + human_count(subjects.size() - kShown) + " more\n";
  return text;
}

// Shown first, because the repair plan below it does not restore everything.
std::string not_repaired_text(const Plan& plan, const TextStyle& style) {
  std::string text;
  if (const std::string gone = unreadable_text(unreadable_in(plan.undecided)); !gone.empty())
    text += inked(style, Ink::kRed, gone) + "\n\n";
  for (const Finding& finding : plan.undecided) {
    text += inked(style, Ink::kGold, "not mended  ") + finding.rule + ": " +
            printable(finding.cause) + "\n" + subjects_text(finding.subjects);
    if (finding.remedy) text += "     " + printable(finding.remedy->text) + "\n";
    text += "\n";
  }
  return text;
}

std::string loss_of_steps(const Plan& plan, std::int64_t lost, const TextStyle& style) {
  const bool keeps = std::all_of(plan.operations.begin(), plan.operations.end(),
                                 [](const Operation& one) { return one.lossless; });
  if (plan.lossless && !plan.undecided.empty())
    return inked(style, Ink::kGold, "these steps lose nothing") + separator(style) +
           plural(plan.undecided.size(), "finding") + " not mended";
  return plan.lossless ? inked(style, Ink::kGreen, "nothing is lost")
         : keeps       ? inked(style, Ink::kGold, "no element is lost")
         : lost == 0   ? inked(style, Ink::kRed, "what was lost stays lost")
                       : inked(style, Ink::kRed,
                               plural(static_cast<std::uint64_t>(lost), "element") + " lost");
}

}  // namespace

std::string plan_to_text(const Plan& plan, const TextStyle& style) {
  std::string text = not_repaired_text(plan, style);
  std::uint64_t moved = 0;
  std::int64_t lost = 0;
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    const Operation& operation = plan.operations[i];
    moved += operation.bytes_moved;
    lost += operation.elements_lost;
    std::string number = std::to_string(i + 1);
    text +=
        padded(number, 3) + "  " + inked(style, Ink::kBold, std::string(name(operation.kind))) +
        (operation.tensors() > 0 ? "   " + plural(operation.tensors(), "tensor") : "") +
        (operation.tiles > 0 ? ", " + plural(static_cast<std::uint64_t>(operation.tiles), "tile")
                             : "") +
        inked(style, Ink::kQuiet, "   for " + operation.rule) + "\n";
    text += wrapped(printable(operation.text), 5, static_cast<std::size_t>(style.width)) + "\n" +
            subjects_text(operation.subjects);
    if (!operation.lossless) {
      std::string lost_now =
          operation.elements_lost == 0
              ? "what was lost stays lost"
              : plural(static_cast<std::uint64_t>(operation.elements_lost), "element") + " lost";
      text += "     " + inked(style, Ink::kRed, lost_now) + "\n";
    }
    text += "\n";
  }
  if (plan.operations.empty()) {
    text += plan.undecided.empty() ? "Nothing to repair.\n" : "Nothing here can be mended.\n";
  } else {
    text += plural(plan.operations.size(), "operation") + separator(style) +
            loss_of_steps(plan, lost, style) + separator(style) +
            (moved == 0 ? "no tensor byte moves" : human_bytes(moved) + " move") + "\n";
    if (!plan.of_other_ranks.empty())
      text += printable(left_out_entries_text(plan.of_other_ranks)) + "\n";
  }
  return text;
}

std::string info_to_text(const Checkpoint& checkpoint, const TextStyle& style) {
  std::string text = headline(checkpoint) + "\n";
  auto row = [&](const char* label, const std::string& value) {
    text += inked(style, Ink::kQuiet, padded(label, 10)) + value + "\n";
  };
  std::uint64_t referenced = 0, missing = 0, bytes = 0;
  for (const FileRow& file : checkpoint.files()) {
    referenced += file.referenced ? 1 : 0;
    missing += file.referenced && file.kind == EntryKind::kMissing ? 1 : 0;
    bytes += file.size;
  }
  row("tiles", human_count(checkpoint.chunk_count()));
  row("objects", human_count(checkpoint.objects().size()));
  row("files",
      human_count(referenced) + " referenced" +
          (missing > 0 ? ", " + inked(style, Ink::kRed, human_count(missing) + " missing") : "") +
          ", " + human_bytes(bytes) + " in the folder");
  if (std::string lost = filled_sum(filled_report_of(checkpoint)); !lost.empty())
    row("filled", inked(style, Ink::kGold, lost));
  if (std::uint64_t gone = missing_chunk_count(checkpoint); gone != 0)
    row("gone", inked(style, Ink::kRed, plural(gone, "tile") + " cannot be read"));
  if (std::size_t named = index_only_tensors(checkpoint).size(); named != 0)
    row("gone", inked(style, Ink::kRed, plural(named, "tensor") + " known by name alone"));
  const Provenance& from = checkpoint.provenance();
  if (!from.save_id.empty()) row("save", printable(from.save_id));
  if (from.pickle_protocol > 0) row("pickle", fmt::format("protocol {}", from.pickle_protocol));
  return text;
}

std::string verify_to_text(const VerifyReport& report, const std::string& checkpoint,
                           const TextStyle& style) {
  Ink ink = Ink::kGold;
  if (report.outcome == VerifyReport::Outcome::kProved) ink = Ink::kGreen;
  if (report.outcome == VerifyReport::Outcome::kBroken) ink = Ink::kRed;
  std::string text =
      inked(style, ink, std::string(name(report.outcome))) + "  " + printable(checkpoint) + "\n";
  for (const std::string& reason : report.reasons) text += "       " + printable(reason) + "\n";
  if (report.tensors > 0) {
    text += plural(static_cast<std::uint64_t>(report.tensors), "tensor") + separator(style) +
            plural(static_cast<std::uint64_t>(report.kept), "element") + " kept" +
            separator(style) + human_count(static_cast<std::uint64_t>(report.lost)) + " lost";
    if (report.out_of_range != 0)
      text += separator(style) + human_count(static_cast<std::uint64_t>(report.out_of_range)) +
              " out of range of their dtype";
    if (report.damaged != 0)
      text += separator(style) + human_count(static_cast<std::uint64_t>(report.damaged)) +
              " damaged before";
    text += "\n";
  }
  return text;
}

}  // namespace shw
