#include "core/compare/entries.h"

#include <algorithm>
#include <map>

#include "core/base/parallel.h"
#include "core/compare/openable.h"
#include "core/formats/plain_value.h"

namespace shw {
namespace {

// Bytes read of an entry to show it, and the size up to which two entries are compared bytewise.
constexpr std::uint64_t kShown = std::uint64_t{1} << 20;
constexpr std::uint64_t kHeld = std::uint64_t{64} << 20;

std::string short_value_text(const Checkpoint& checkpoint, std::size_t object) {
  auto value = read_plain_value(checkpoint, object, kShown);
  if (!value || value->kind == PlainValue::Kind::kOther) return {};
  if (value->kind == PlainValue::Kind::kDict)
    return "a dict of " + std::to_string(value->items.size() / 2);
  return to_text(*value);
}

Result<Bytes> item_bytes(const Checkpoint& checkpoint, std::size_t object) {
  const NonTensorEntry& row = checkpoint.objects()[object];
  if (!row.item || row.item->file == FileId::kNone)
    return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
  if (!is_reachable(checkpoint, *row.item))
    return fail(ErrorKind::kDamaged, "its bytes are missing: the file is missing or truncated",
                {checkpoint.file(row.item->file).path});
  if (static_cast<std::uint64_t>(row.item->length) > kHeld)
    return fail(ErrorKind::kUnsupported, "is larger than what is read of an entry like it",
                {checkpoint.file(row.item->file).path});
  SHW_TRY(auto source, checkpoint.directory()->open(checkpoint.file(row.item->file).path));
  return read_bytes(*source, static_cast<std::uint64_t>(row.item->offset),
                    static_cast<std::uint64_t>(row.item->length));
}

std::string words_of(const Error& error, const char* side) {
  std::string file = error.place.file.empty() ? "" : error.place.file + ": ";
  return std::string("in ") + side + " " + file + error.message;
}

// Empty if the entries are equal.
std::optional<EntryDifference> compare_entry(const Checkpoint& a, std::size_t one,
                                             const Checkpoint& b, std::size_t two) {
  EntryDifference out{a.objects()[one].fqn, DifferenceKind::kUndecided, {}, {}, {}};
  auto left = read_plain_opcodes(a, one), right = read_plain_opcodes(b, two);
  if (left && right && *left == *right) return std::nullopt;
  if (left && right) {
    out.kind = DifferenceKind::kValues;
    out.a = short_value_text(a, one);
    out.b = short_value_text(b, two);
    return out;
  }
  bool has_items = !a.objects()[one].inlined && !b.objects()[two].inlined;
  auto left_bytes = has_items ? item_bytes(a, one) : Result<Bytes>(Bytes{});
  auto right_bytes = has_items ? item_bytes(b, two) : Result<Bytes>(Bytes{});
  if (left_bytes && right_bytes && has_items && *left_bytes == *right_bytes) return std::nullopt;
  if (!left_bytes || !right_bytes) {
    out.why = !left_bytes ? words_of(left_bytes.error(), "A") : words_of(right_bytes.error(), "B");
  } else {
    // Equal objects may have different pickles, and pickles are not executed.
    out.why = "the bytes differ, and what they stand for is not made: " +
              (!left ? words_of(left.error(), "A") : words_of(right.error(), "B"));
  }
  return out;
}

// Identical byte ranges of the same file, readable or not.
bool is_same_place(const Checkpoint& a, const NonTensorEntry& one, const Checkpoint& b,
                   const NonTensorEntry& two) {
  if (a.directory() == nullptr || b.directory() == nullptr || !one.item || !two.item) return false;
  return a.directory()->name() == b.directory()->name() && is_reachable(a, *one.item) &&
         is_reachable(b, *two.item) && a.file(one.item->file).path == b.file(two.item->file).path &&
         one.item->offset == two.item->offset && one.item->length == two.item->length;
}

// Values inside the metadata are already read.
bool are_both_inlined(const NonTensorEntry& a, const NonTensorEntry& b) {
  return a.inlined && b.inlined && !a.inlined->opcodes.empty() && !b.inlined->opcodes.empty();
}

using ByName = std::map<std::string_view, std::size_t>;

ByName by_name(const Checkpoint& checkpoint) {
  ByName names;
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i)
    names.emplace(checkpoint.objects()[i].fqn, i);
  return names;
}

// Reports entries whose own value was lost and replaced by another one's.
void add_replaced_entries(const FilledReport& filled, const char* side,
                          std::vector<EntryDifference>& out) {
  for (const FilledEntry& entry : filled.entries) {
    bool told = std::any_of(out.begin(), out.end(),
                            [&](const auto& other) { return other.fqn == entry.fqn; });
    if (told) continue;
    EntryDifference taken;
    taken.fqn = entry.fqn;
    taken.why =
        std::string("in ") + side + " its own value is gone: it says what " + entry.from + " said";
    out.push_back(std::move(taken));
  }
}

}  // namespace

Result<EntryComparison> compare_entries(const Checkpoint& a, const FilledReport& filled_a,
                                        const Checkpoint& b, const FilledReport& filled_b,
                                        bool data, Progress* progress) {
  EntryComparison out;
  OpenableFiles files(a);
  ByName left = by_name(a), right = by_name(b);
  std::vector<std::pair<std::size_t, std::size_t>> both;
  for (const auto& [fqn, one] : left) {
    auto other = right.find(fqn);
    // If it is a tensor on the other side, it is reported there.
    if (other == right.end() && !b.find(fqn))
      out.entries.push_back({std::string(fqn), DifferenceKind::kMissing, {}, {}, {}});
    if (other == right.end()) continue;
    if (!data && is_same_place(a, a.objects()[one], b, b.objects()[other->second])) {
      if (const auto& error = files.error_of(a.objects()[one].item->file))
        out.entries.push_back(
            {std::string(fqn), DifferenceKind::kUndecided, {}, {}, words_of(*error, "A")});
      continue;
    }
    if (data || are_both_inlined(a.objects()[one], b.objects()[other->second]))
      both.emplace_back(one, other->second);
    else
      ++out.uncompared_count;
  }
  for (const auto& [fqn, two] : right) {
    if (!left.contains(fqn) && !a.find(fqn))
      out.entries.push_back({std::string(fqn), DifferenceKind::kAdded, {}, {}, {}});
  }
  std::vector<std::optional<EntryDifference>> seen(both.size());
  SHW_CHECK(parallel_for(both.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(progress)) return cancelled_error();
    seen[i] = compare_entry(a, both[i].first, b, both[i].second);
    return {};
  }));
  for (auto& entry : seen) {
    if (entry) out.entries.push_back(std::move(*entry));
  }
  add_replaced_entries(filled_a, "A", out.entries);
  add_replaced_entries(filled_b, "B", out.entries);
  return out;
}

}  // namespace shw
