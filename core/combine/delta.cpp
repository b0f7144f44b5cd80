#include "core/combine/delta.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/base/json.h"
#include "core/base/words.h"
#include "core/combine/model_config.h"
#include "core/combine/tensor_rows.h"
#include "core/facts/names/delta_names.h"
#include "core/facts/values/computed_tensors.h"

namespace shw {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDeltaSchema = "shardwright/delta-1";
constexpr std::uint64_t kMaxDeltaFile = std::uint64_t{64} << 20;
constexpr std::size_t kEqualRun = 256;  // bytes compared at once; contains whole elements
constexpr std::int64_t kComparedAtOnce = std::int64_t{4} << 20;  // elements

// --- delta.json

std::shared_ptr<const ByteSource> delta_file(const DeltaInfo& info) {
  auto of = [](const TotalHash& all) { return Json{{"hash", all.hash}, {"tensors", all.tensors}}; };
  const Json json{{"schema", kDeltaSchema},
                  {"base", of(info.base)},
                  {"result", of(info.result)},
                  {"dropped", info.dropped}};
  return text_file(kDeltaFile, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

tl::unexpected<Error> invalid_delta_error(std::string why) {
  return fail(ErrorKind::kDamaged, std::move(why), Place{.file = kDeltaFile, .tensor = {}});
}

std::optional<TotalHash> hash_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_object()) return std::nullopt;
  const auto hash = found->find("hash"), tensors = found->find("tensors");
  if (hash == found->end() || !hash->is_string() || hash->get<std::string>().empty() ||
      tensors == found->end() || !tensors->is_number_unsigned())
    return std::nullopt;
  return TotalHash{hash->get<std::string>(), tensors->get<std::size_t>()};
}

// --- what changed

// Two tensors of one shape and dtype, divided into blocks of rows.
struct TensorPair {
  ReadableTensor before, after;
  std::int64_t volume = 0, row = 1, rows_at_once = 1;
  std::vector<std::int64_t> changes_before_block;  // changes before each block, then the total
  std::int64_t changed() const { return changes_before_block.back(); }
  std::int64_t rows() const { return before.shape.empty() ? 1 : before.shape[0]; }
};

TensorPair pair_of(ReadableTensor before, ReadableTensor after) {
  TensorPair pair;
  pair.before = std::move(before);
  pair.after = std::move(after);
  pair.volume = volume(pair.before.shape).value_or(0);
  pair.row = std::max<std::int64_t>(pair.volume / std::max<std::int64_t>(pair.rows(), 1), 1);
  pair.rows_at_once = std::max<std::int64_t>(kComparedAtOnce / pair.row, 1);
  return pair;
}

struct ChangedElements {
  std::vector<std::int64_t> indices;
  Bytes values;
};

// Skips whole runs that are equal from here on.
std::size_t equal_bytes(const Bytes& a, const Bytes& b, std::size_t from) {
  std::size_t at = from;
  while (at + kEqualRun <= a.size() && std::memcmp(a.data() + at, b.data() + at, kEqualRun) == 0)
    at += kEqualRun;
  return at - from;
}

Result<ChangedElements> find_changed_elements(const TensorPair& pair, std::int64_t block) {
  const std::int64_t first = block * pair.rows_at_once;
  const std::int64_t count = std::min(pair.rows_at_once, pair.rows() - first);
  const Box box = rows_box(pair.before.shape, first, count);
  SHW_TRY(const Bytes before, read_stored(pair.before, box));
  SHW_TRY(const Bytes after, read_stored(pair.after, box));
  const std::size_t width = size_of(pair.after.dtype);
  ChangedElements changed;
  for (std::size_t at = 0; at < after.size(); at += width) {
    if (at % kEqualRun == 0) at += equal_bytes(before, after, at);
    if (at == after.size()) break;
    if (std::memcmp(before.data() + at, after.data() + at, width) == 0) continue;
    changed.indices.push_back(first * pair.row + static_cast<std::int64_t>(at / width));
    changed.values.insert(changed.values.end(), after.begin() + static_cast<std::ptrdiff_t>(at),
                          after.begin() + static_cast<std::ptrdiff_t>(at + width));
  }
  return changed;
}

Status count_changes(TensorPair& pair) {
  pair.changes_before_block = {0};
  for (std::int64_t block = 0; block * pair.rows_at_once < pair.rows(); ++block) {
    SHW_TRY(const ChangedElements changed, find_changed_elements(pair, block));
    pair.changes_before_block.push_back(pair.changed() +
                                        static_cast<std::int64_t>(changed.indices.size()));
  }
  return {};
}

Bytes index_bytes(const std::vector<std::int64_t>& indices, Dtype dtype) {
  Bytes bytes(indices.size() * size_of(dtype));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto narrow = static_cast<std::int32_t>(indices[i]);
    if (dtype == Dtype::kInt32)
      std::memcpy(bytes.data() + i * sizeof narrow, &narrow, sizeof narrow);
    else
      std::memcpy(bytes.data() + i * sizeof indices[i], &indices[i], sizeof indices[i]);
  }
  return bytes;
}

Dtype index_dtype(std::int64_t volume) {
  return volume <= std::numeric_limits<std::int32_t>::max() ? Dtype::kInt32 : Dtype::kInt64;
}

// The indices, or the values, of changed elements [first, first + count).
Result<Bytes> changed_indices_or_values(const TensorPair& pair, std::int64_t first,
                                        std::int64_t count, bool as_values) {
  const Dtype dtype = as_values ? pair.after.dtype : index_dtype(pair.volume);
  const auto width = static_cast<std::int64_t>(size_of(dtype));
  const auto& before = pair.changes_before_block;
  auto block = std::upper_bound(before.begin(), before.end(), first) - before.begin() - 1;
  Bytes all;
  while (count > 0 && static_cast<std::size_t>(block) + 1 < before.size()) {
    SHW_TRY(ChangedElements changed, find_changed_elements(pair, block));
    const auto found = static_cast<std::int64_t>(changed.indices.size());
    if (found !=
        before[static_cast<std::size_t>(block) + 1] - before[static_cast<std::size_t>(block)])
      return fail(
          ErrorKind::kIo, "changed during the comparison",
          Place{.file = {}, .tensor = std::string(pair.after.checkpoint->fqn(pair.after.tensor))});
    const Bytes bytes = as_values ? std::move(changed.values) : index_bytes(changed.indices, dtype);
    const std::int64_t skipped = first - before[static_cast<std::size_t>(block)];
    const std::int64_t taken = std::min(count, found - skipped);
    all.insert(all.end(), bytes.begin() + skipped * width,
               bytes.begin() + (skipped + taken) * width);
    first += taken;
    count -= taken;
    ++block;
  }
  return all;
}

ComputedTensor copied(std::string fqn, ReadableTensor from) {
  ComputedTensor tensor{
      .fqn = std::move(fqn), .dtype = from.dtype, .shape = from.shape, .make = {}};
  tensor.make = [from = std::move(from)](std::int64_t first, std::int64_t count) {
    return read_stored(from, rows_box(from.shape, first, count));
  };
  return tensor;
}

void add_changes(const std::string& fqn, const std::shared_ptr<const TensorPair>& pair,
                 ComputedPart& part) {
  for (const bool as_values : {false, true}) {
    ComputedTensor tensor{
        .fqn = fqn + std::string(as_values ? kDeltaValues : kDeltaIndices),
        .dtype = as_values ? pair->after.dtype : index_dtype(pair->volume),
        .shape = {pair->changed()},
        .make = {},
    };
    tensor.make = [pair, as_values](std::int64_t first, std::int64_t count) {
      return changed_indices_or_values(*pair, first, count, as_values);
    };
    part.tensors.push_back(std::move(tensor));
  }
}

Status add_tensor(const Checkpoint& base, const std::shared_ptr<const Checkpoint>& base_held,
                  const std::shared_ptr<const Checkpoint>& result, TensorId tensor,
                  ComputedPart& part) {
  const std::string fqn(result->fqn(tensor));
  const auto before = base.find(fqn);
  const bool is_alike = before && base.dtype(*before) == result->dtype(tensor) &&
                        std::ranges::equal(base.shape(*before), result->shape(tensor));
  if (!is_alike) {
    part.tensors.push_back(copied(fqn + std::string(kDeltaWhole), readable(result, tensor)));
    return {};
  }
  TensorPair pair = pair_of(readable(base_held, *before), readable(result, tensor));
  if (pair.volume == 0) return {};
  SHW_CHECK(count_changes(pair));
  if (pair.changed() == 0) return {};
  const double width = size_of(pair.after.dtype);
  const double with_index = width + size_of(index_dtype(pair.volume));
  if (static_cast<double>(pair.changed()) * with_index > static_cast<double>(pair.volume) * width)
    part.tensors.push_back(copied(fqn + std::string(kDeltaWhole), std::move(pair.after)));
  else
    add_changes(fqn, std::make_shared<const TensorPair>(std::move(pair)), part);
  return {};
}

// --- applying a delta

tl::unexpected<Error> does_not_fit(std::string why, std::string_view fqn) {
  return fail(ErrorKind::kDamaged, std::move(why), Place{.file = {}, .tensor = std::string(fqn)});
}

struct Changes {
  ReadableTensor before, indices, values;
  std::int64_t count() const { return indices.shape[0]; }
};

Result<std::vector<std::int64_t>> indices_at(const Changes& changes, std::int64_t first,
                                             std::int64_t count) {
  SHW_TRY(const Bytes bytes, read_stored(changes.indices, {{first}, {count}}));
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::int32_t narrow = 0;
    if (changes.indices.dtype == Dtype::kInt32) {
      std::memcpy(&narrow, bytes.data() + i * sizeof narrow, sizeof narrow);
      indices[i] = narrow;
    } else {
      std::memcpy(&indices[i], bytes.data() + i * sizeof indices[i], sizeof indices[i]);
    }
  }
  return indices;
}

Status check_indices(const Changes& changes, std::string_view fqn) {
  const std::int64_t volume = shw::volume(changes.before.shape).value_or(0);
  std::int64_t last = -1;
  for (std::int64_t first = 0; first < changes.count(); first += kComparedAtOnce) {
    SHW_TRY(const auto indices,
            indices_at(changes, first, std::min(kComparedAtOnce, changes.count() - first)));
    for (std::int64_t index : indices) {
      if (index <= last || index >= volume)
        return does_not_fit("has indices that do not increase, or are outside of the tensor", fqn);
      last = index;
    }
  }
  return {};
}

// Index of the first change at or after an element.
Result<std::int64_t> find_first_change_from(const Changes& changes, std::int64_t index) {
  std::int64_t low = 0, high = changes.count();
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    SHW_TRY(const auto found, indices_at(changes, middle, 1));
    if (found.front() < index)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

Result<Bytes> changed_rows(const Changes& changes, std::int64_t first, std::int64_t count) {
  SHW_TRY(Bytes elements,
          read_stored(changes.before, rows_box(changes.before.shape, first, count)));
  const std::size_t width = size_of(changes.before.dtype);
  const auto held = static_cast<std::int64_t>(elements.size() / width);
  const std::int64_t begin = count == 0 ? 0 : first * (held / count);
  SHW_TRY(const std::int64_t low, find_first_change_from(changes, begin));
  SHW_TRY(const std::int64_t high, find_first_change_from(changes, begin + held));
  if (low == high) return elements;
  SHW_TRY(const auto indices, indices_at(changes, low, high - low));
  SHW_TRY(const Bytes values, read_stored(changes.values, {{low}, {high - low}}));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < begin || indices[i] >= begin + held)
      return does_not_fit("changed while it was read",
                          changes.indices.checkpoint->fqn(changes.indices.tensor));
    std::memcpy(elements.data() + static_cast<std::size_t>(indices[i] - begin) * width,
                values.data() + i * width, width);
  }
  return elements;
}

class DeltaApplication {
 public:
  DeltaApplication(std::shared_ptr<const Checkpoint> base, std::shared_ptr<const Checkpoint> delta)
      : base_(std::move(base)), delta_(std::move(delta)) {}

  Result<ComputedPart> take(const DeltaInfo& info) {
    for (TensorId tensor : delta_->tensors()) SHW_CHECK(add(tensor));
    for (const std::string& fqn : info.dropped) {
      const auto found = base_->find(fqn);
      if (!found || !part_.replaced.insert(*found).second)
        return does_not_fit("is dropped, and the base does not have it", fqn);
    }
    part_.made_of = {base_, delta_};
    return std::move(part_);
  }

 private:
  Status add(TensorId tensor) {
    const std::string_view fqn = delta_->fqn(tensor);
    if (fqn.ends_with(kDeltaValues) &&
        delta_->find(std::string(fqn.substr(0, fqn.size() - kDeltaValues.size())) +
                     std::string(kDeltaIndices)))
      return {};
    if (fqn.ends_with(kDeltaWhole)) {
      std::string name(fqn.substr(0, fqn.size() - kDeltaWhole.size()));
      if (const auto before = base_->find(name)) part_.replaced.insert(*before);
      part_.tensors.push_back(copied(std::move(name), readable(delta_, tensor)));
      return {};
    }
    if (!fqn.ends_with(kDeltaIndices)) return does_not_fit("is not a tensor of a delta", fqn);
    return add_changed(std::string(fqn.substr(0, fqn.size() - kDeltaIndices.size())), tensor);
  }

  Status add_changed(const std::string& name, TensorId indices) {
    const auto before = base_->find(name);
    const auto values = delta_->find(name + std::string(kDeltaValues));
    const std::string_view fqn = delta_->fqn(indices);
    if (!before || !values) return does_not_fit("has no tensor that it changes, or no values", fqn);
    Changes changes{readable(base_, *before), readable(delta_, indices), readable(delta_, *values)};
    const Dtype dtype = changes.indices.dtype;
    const bool is_right = (dtype == Dtype::kInt32 || dtype == Dtype::kInt64) &&
                          changes.indices.shape.size() == 1 &&
                          changes.values.shape == changes.indices.shape &&
                          changes.values.dtype == changes.before.dtype;
    if (!is_right) return does_not_fit("does not fit the base's tensor or its values", fqn);
    SHW_CHECK(check_indices(changes, fqn));
    part_.replaced.insert(*before);
    ComputedTensor tensor{
        .fqn = name, .dtype = changes.before.dtype, .shape = changes.before.shape, .make = {}};
    tensor.make = [changes = std::move(changes)](std::int64_t first, std::int64_t count) {
      return changed_rows(changes, first, count);
    };
    part_.tensors.push_back(std::move(tensor));
    return {};
  }

  const std::shared_ptr<const Checkpoint> base_, delta_;
  ComputedPart part_;
};

}  // namespace

Result<DeltaInfo> read_delta_info(const Directory& folder) {
  if (folder.stat(kDeltaFile).kind != EntryKind::kFile)
    return fail(ErrorKind::kUsage, "is not a delta: it has no delta.json", {folder.name()},
                "`shardwright delta BASE RESULT` makes one.");
  SHW_TRY(auto source, folder.open(kDeltaFile));
  if (source->size() > kMaxDeltaFile) return invalid_delta_error("is too large");
  SHW_TRY(const Bytes bytes, read_bytes(*source, 0, source->size()));
  const auto parsed = parse_json<Json>({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const Json& json = parsed.tree;
  if (!json.is_object() || json.value("schema", Json()) != Json(kDeltaSchema))
    return invalid_delta_error(std::string("is not of schema ") + kDeltaSchema);
  const auto base = hash_in(json, "base"), result = hash_in(json, "result");
  const auto dropped = json.find("dropped");
  if (!base || !result || dropped == json.end() || !dropped->is_array())
    return invalid_delta_error("lacks base, result or dropped");
  DeltaInfo info{*base, *result, {}};
  for (const Json& one : *dropped) {
    if (!one.is_string()) return invalid_delta_error("lists something else than names as dropped");
    info.dropped.push_back(one.get<std::string>());
  }
  return info;
}

Result<std::shared_ptr<const Checkpoint>> compute_delta(std::shared_ptr<const Checkpoint> base,
                                                        std::shared_ptr<const Checkpoint> result,
                                                        const TotalHash& base_hash,
                                                        const TotalHash& result_hash,
                                                        Progress* progress) {
  if (result->directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint has no directory");
  ComputedPart part;
  DeltaInfo info{base_hash, result_hash, {}};
  for (TensorId tensor : result->tensors()) {
    if (is_cancelled(progress)) return cancelled_error();
    SHW_CHECK(add_tensor(*base, base, result, tensor, part));
  }
  for (TensorId tensor : base->tensors()) {
    if (!result->find(base->fqn(tensor))) info.dropped.emplace_back(base->fqn(tensor));
  }
  if (part.tensors.empty() && info.dropped.empty())
    return fail(ErrorKind::kUsage, "the two are equal bit for bit: there is nothing to write",
                {result->directory()->name()});
  if (part.tensors.empty())
    return fail(ErrorKind::kUnsupported,
                "lacks " + plural(info.dropped.size(), "tensor") +
                    " and is the same else: a delta holds at least one tensor",
                {result->directory()->name()},
                "`shardwright convert --leave-out PATTERN` leaves tensors out.");
  part.files.push_back(delta_file(info));
  part.made_of = {base, result};
  return make_computed_only_checkpoint(*result->directory(), std::move(part), progress);
}

Result<std::shared_ptr<const Checkpoint>> apply_delta(std::shared_ptr<const Checkpoint> base,
                                                      std::shared_ptr<const Checkpoint> delta,
                                                      const DeltaInfo& info, Progress* progress) {
  DeltaApplication application(base, std::move(delta));
  SHW_TRY(ComputedPart part, application.take(info));
  return add_computed_tensors(std::move(base), std::move(part), progress);
}

}  // namespace shw
