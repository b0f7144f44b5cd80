#include "core/transform/named_entries.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/parallel.h"
#include "core/base/spelling.h"
#include "core/tensor/cast.h"
#include "core/transform/packed_tensor.h"
#include "core/transform/tilings.h"

namespace shw {
namespace {

tl::unexpected<Error> no_such_tensor_error(TargetState& all, const std::string& pattern) {
  sort_and_remove_dropped(all);
  std::vector<std::string_view> names;
  for (const TargetEntry& entry : all.tensors) names.push_back(entry.fqn);
  return fail(ErrorKind::kUsage, "\"" + pattern + "\" names no tensor",
              Place{.file = {}, .tensor = pattern},
              did_you_mean_text(did_you_mean(pattern, names)));
}

template <class Number>
FromConstant bits_of(Number number) {
  FromConstant constant;
  std::memcpy(constant.bits.data(), &number, sizeof number);
  return constant;
}

std::optional<FromConstant> whole_number(Dtype dtype, double value) {
  if (std::nearbyint(value) != value || std::fabs(value) >= 9007199254740992.0) return std::nullopt;
  auto number = static_cast<std::int64_t>(value);
  auto fits = [&](std::int64_t low, std::int64_t high) { return number >= low && number <= high; };
  switch (dtype) {
    case Dtype::kBool:
      return fits(0, 1) ? std::optional(bits_of(static_cast<std::uint8_t>(number))) : std::nullopt;
    case Dtype::kInt8:
      return fits(-128, 127) ? std::optional(bits_of(static_cast<std::int8_t>(number)))
                             : std::nullopt;
    case Dtype::kUint8:
      return fits(0, 255) ? std::optional(bits_of(static_cast<std::uint8_t>(number)))
                          : std::nullopt;
    case Dtype::kInt16:
      return fits(-32768, 32767) ? std::optional(bits_of(static_cast<std::int16_t>(number)))
                                 : std::nullopt;
    case Dtype::kUint16:
      return fits(0, 65535) ? std::optional(bits_of(static_cast<std::uint16_t>(number)))
                            : std::nullopt;
    case Dtype::kInt32:
      return fits(INT32_MIN, INT32_MAX) ? std::optional(bits_of(static_cast<std::int32_t>(number)))
                                        : std::nullopt;
    case Dtype::kUint32:
      return fits(0, UINT32_MAX) ? std::optional(bits_of(static_cast<std::uint32_t>(number)))
                                 : std::nullopt;
    case Dtype::kInt64:
      return bits_of(number);
    case Dtype::kUint64:
      return fits(0, INT64_MAX) ? std::optional(bits_of(static_cast<std::uint64_t>(number)))
                                : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

tl::unexpected<Error> step_error(std::string_view fqn, std::string why) {
  return fail(ErrorKind::kUsage, std::move(why), Place{.file = {}, .tensor = std::string(fqn)});
}

EntryNames& entry_names_of(TargetState& all) {
  if (all.names) return *all.names;
  EntryNames& names = all.names.emplace();
  for (std::size_t i = 0; i < all.tensors.size(); ++i)
    names.add(NamedKind::kTensor, all.tensors[i].fqn, i);
  for (std::size_t i = 0; i < all.objects.size(); ++i)
    names.add(NamedKind::kObject, all.objects[i].fqn, i);
  return names;
}

namespace {

template <class Entry>
void put_in_order(std::vector<Entry>& entries, const std::vector<std::size_t>& order) {
  std::vector<Entry> kept;
  kept.reserve(order.size());
  for (std::size_t i : order) kept.push_back(std::move(entries[i]));
  entries = std::move(kept);
}

}  // namespace

void sort_and_remove_dropped(TargetState& all) {
  if (!all.names) return;
  const bool tensors = all.names->has_removed(NamedKind::kTensor),
             objects = all.names->has_removed(NamedKind::kObject);
  if (!tensors && !objects) return;
  put_in_order(all.tensors, all.names->order(NamedKind::kTensor, all.tensors.size()));
  put_in_order(all.objects, all.names->order(NamedKind::kObject, all.objects.size()));
  all.names.reset();
}

Result<std::size_t> entry_named(TargetState& all, const std::string& fqn) {
  if (auto found = entry_names_of(all).find(NamedKind::kTensor, fqn)) return *found;
  return no_such_tensor_error(all, fqn);
}

namespace {

// Entries with exactly these names, sorted by index; nullopt if a name is a pattern or indices do
// not give the order.
std::optional<std::vector<std::size_t>> entries_with_exact_names(TargetState& all,
                                                                 const Patterns& names) {
  const EntryNames& known = entry_names_of(all);
  if (names.size() > 1 && known.has_moved_entries()) return std::nullopt;
  std::vector<std::size_t> entries;
  for (const std::string& name : names) {
    auto found = known.find(NamedKind::kTensor, name);
    if (!found) return std::nullopt;
    entries.push_back(*found);
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  return entries;
}

}  // namespace

Result<std::vector<std::size_t>> entries_named(TargetState& all, const Patterns& patterns) {
  if (patterns.empty()) return fail(ErrorKind::kUsage, "no tensor is named");
  if (auto exact = entries_with_exact_names(all, patterns)) return std::move(*exact);
  sort_and_remove_dropped(all);
  EntryNames& names = entry_names_of(all);
  std::vector<bool> wanted(all.tensors.size(), false);
  for (const std::string& pattern : patterns) {
    if (auto exact = names.find(NamedKind::kTensor, pattern)) {
      wanted[*exact] = true;
      continue;
    }
    bool found = false;
    for (std::size_t i = 0; i < all.tensors.size(); ++i) {
      if (!matches_pattern(pattern, all.tensors[i].fqn)) continue;
      wanted[i] = found = true;
    }
    if (!found) return no_such_tensor_error(all, pattern);
  }
  std::vector<std::size_t> entries;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) entries.push_back(i);
  }
  return entries;
}

Result<TargetTensor> copy_of_entry(const TargetState& all, std::size_t entry) {
  SHW_TRY(TargetTensor tensor, tensor_of(all, all.tensors[entry]));
  tensor.fqn = all.tensors[entry].fqn;
  return tensor;
}

void replace_entry_tensor(TargetState& all, std::size_t entry, TargetTensor tensor) {
  std::string& fqn = all.tensors[entry].fqn;
  // Only a renamed tensor changes shared state, so others may be put from many threads
  // (change_matching_tensors).
  if (fqn != tensor.fqn) {
    EntryNames& names = entry_names_of(all);
    names.forget(NamedKind::kTensor, fqn, entry);
    names.add(NamedKind::kTensor, tensor.fqn, entry);
    fqn = tensor.fqn;
  }
  all.tensors[entry].tiling = {};
  all.tensors[entry].made = std::make_shared<const PackedTensor>(std::move(tensor));
}

void add_entry(TargetState& all, TargetTensor tensor) {
  entry_names_of(all).add(NamedKind::kTensor, tensor.fqn, all.tensors.size());
  TargetEntry entry{.fqn = tensor.fqn};
  entry.made = std::make_shared<const PackedTensor>(std::move(tensor));
  all.tensors.push_back(std::move(entry));
}

void add_object(TargetState& all, TargetNonTensorEntry object) {
  entry_names_of(all).add(NamedKind::kObject, object.fqn, all.objects.size());
  all.objects.push_back(std::move(object));
}

void rename_object(TargetState& all, std::size_t object, std::string name) {
  EntryNames& names = entry_names_of(all);
  names.forget(NamedKind::kObject, all.objects[object].fqn, object);
  names.add(NamedKind::kObject, name, object);
  all.objects[object].fqn = std::move(name);
}

void remove_entry(TargetState& all, std::size_t entry, std::vector<TargetEntry> instead) {
  EntryNames& names = entry_names_of(all);
  names.forget(NamedKind::kTensor, all.tensors[entry].fqn, entry);
  names.mark_removed(NamedKind::kTensor, entry, {all.tensors.size(), instead.size()});
  all.tensors[entry] = {};
  for (TargetEntry& one : instead) {
    names.add(NamedKind::kTensor, one.fqn, all.tensors.size());
    all.tensors.push_back(std::move(one));
  }
}

void remove_object(TargetState& all, std::size_t object) {
  EntryNames& names = entry_names_of(all);
  names.forget(NamedKind::kObject, all.objects[object].fqn, object);
  names.mark_removed(NamedKind::kObject, object, {});
  all.objects[object] = {};
}

Status change_matching_tensors(TargetState& all, const Patterns& patterns,
                               const std::function<Status(TargetTensor&)>& change) {
  SHW_TRY(auto entries, entries_named(all, patterns));
  return parallel_for(entries.size(), [&](std::size_t i) -> Status {
    SHW_TRY(TargetTensor tensor, copy_of_entry(all, entries[i]));
    SHW_CHECK(change(tensor));
    replace_entry_tensor(all, entries[i], std::move(tensor));
    return {};
  });
}

Result<std::size_t> dim_of(const TargetTensor& tensor, std::int64_t dim) {
  auto ndim = static_cast<std::int64_t>(tensor.shape.size());
  if (dim >= -ndim && dim < ndim) return static_cast<std::size_t>(dim < 0 ? dim + ndim : dim);
  return step_error(tensor.fqn,
                    fmt::format("has no dim {}: its shape is {}", dim, to_text(tensor.shape)));
}

Result<FromConstant> constant_of(Dtype dtype, double value) {
  std::array<std::byte, sizeof value> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  if (dtype == Dtype::kFloat64) return bits_of(value);
  if (can_cast(Dtype::kFloat64, dtype)) {
    FromConstant constant;
    std::uint8_t out_of_range = 0;
    cast_row(Dtype::kFloat64, bytes.data(), sizeof value, dtype,
             reinterpret_cast<std::byte*>(constant.bits.data()), sizeof constant.bits, 1,
             &out_of_range);
    if (out_of_range != 0)
      return fail(ErrorKind::kUsage, fmt::format("{} is beyond what {} holds", value, name(dtype)));
    return constant;
  }
  if (value == 0 && size_of(dtype) != 0) return FromConstant{};
  if (auto number = whole_number(dtype, value)) return *number;
  return fail(ErrorKind::kUsage, fmt::format("{} is not a {}", value, name(dtype)));
}

Status check_boxes(const TargetTensor& tensor, const std::vector<Box>& boxes) {
  for (const Box& box : boxes) {
    if (!is_inside(box.offsets, box.sizes, tensor.shape)) {
      return step_error(tensor.fqn, "offsets " + to_text(box.offsets) + " and sizes " +
                                        to_text(box.sizes) + " are not a box of " +
                                        to_text(tensor.shape));
    }
  }
  return {};
}

}  // namespace shw
