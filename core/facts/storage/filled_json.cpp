// Conversion of fill records to and from JSON.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/cancellable_range.h"
#include "core/base/checked.h"
#include "core/base/destroy_in_background.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/base/version.h"
#include "core/facts/storage/filled.h"

namespace shw {
namespace {

using FilledJson = nlohmann::ordered_json;
using In = nlohmann::json;

FilledJson json_of(const FilledTensor& tensor, std::size_t most_boxes) {
  FilledJson boxes = FilledJson::array();
  for (std::size_t i = 0; i < std::min(most_boxes, tensor.boxes.size()); ++i)
    boxes.push_back({{"offsets", tensor.boxes[i].offsets}, {"sizes", tensor.boxes[i].sizes}});
  FilledJson out = {{"shape", tensor.shape},
                    {"total", tensor.total()},
                    {"kept", tensor.total() - tensor.lost},
                    {"lost", tensor.lost}};
  if (!tensor.fill.empty()) out["fill"] = tensor.fill;
  if (!tensor.fill_from.empty()) out["fill_from"] = escape_name(tensor.fill_from);
  if (!tensor.fill_checkpoint.empty()) out["fill_checkpoint"] = escape_name(tensor.fill_checkpoint);
  out["lost_boxes"] = std::move(boxes);
  if (!tensor.has_all_boxes || tensor.boxes.size() > most_boxes) out["more_boxes"] = true;
  return out;
}

std::string text_of(const In& json) {
  return json.is_string() ? unescape_name(json.get_ref<const std::string&>()).substr(0, 4096)
                          : std::string();
}

std::optional<Extents> extents(const In& json) {
  if (!json.is_array() || json.size() > kMaxDims) return std::nullopt;
  Extents out;
  for (const In& one : json) {
    auto number = json_integer(one);
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

// Values of `fill`; unknown ones only mean that something was filled in.
std::string parse_fill_kind(const In& json) {
  std::string word = text_of(json);
  for (const char* known : {"zero", "constant", "cast", "from", "side", "mixed"}) {
    if (word == known) return word;
  }
  return word.empty() ? "" : "mixed";
}

// Reads boxes until one is outside of the shape or overlaps another.
void read_boxes(const In& json, FilledTensor& tensor, std::size_t& looks) {
  if (member_or_null(json, "more_boxes").is_boolean()) tensor.has_all_boxes = false;
  const In& list = member_or_null(json, "lost_boxes");
  if (!list.is_array()) return;
  std::vector<Box> boxes;
  for (const In& one : list) {
    auto offsets = extents(member_or_null(one, "offsets")),
         sizes = extents(member_or_null(one, "sizes"));
    if (offsets && sizes && is_inside(*offsets, *sizes, tensor.shape))
      boxes.push_back({std::move(*offsets), std::move(*sizes)});
    else
      tensor.has_all_boxes = false;
  }
  if (!add_all_disjoint(tensor.boxes, boxes, looks)) tensor.has_all_boxes = false;
}

// Number of elements that a cast could not represent or that were damaged before: they were not
// replaced.
std::int64_t count_changed_not_replaced(const In& json, std::int64_t most) {
  std::int64_t all = 0;
  for (const char* key : {"out_of_range", "damaged"}) {
    const auto told = json_integer(member_or_null(json, key));
    if (told && *told >= 0 && *told <= most - all) all += *told;
  }
  return all;
}

std::optional<FilledTensor> filled_tensor_from_json(const std::string& fqn, const In& json,
                                                    std::size_t& looks) {
  auto shape = extents(member_or_null(json, "shape"));
  auto lost = json_integer(member_or_null(json, "lost"));
  auto total = shape ? volume(*shape) : std::nullopt;
  if (!lost || !total) return std::nullopt;
  FilledTensor tensor{fqn, std::move(*shape), std::clamp<std::int64_t>(*lost, 0, *total)};
  tensor.fill = parse_fill_kind(member_or_null(json, "fill"));
  tensor.fill_from = text_of(member_or_null(json, "fill_from"));
  tensor.fill_checkpoint = text_of(member_or_null(json, "fill_checkpoint"));
  read_boxes(json, tensor, looks);
  // Uses the greatest loss among its numbers and boxes.
  if (auto kept = json_integer(member_or_null(json, "kept")); kept && *kept >= 0 && *kept <= *total)
    tensor.lost =
        std::max(tensor.lost, *total - *kept - count_changed_not_replaced(json, *total - *kept));
  std::int64_t in_boxes = 0;
  for (const Box& box : tensor.boxes) in_boxes += volume(box.sizes).value_or(0);
  tensor.lost = std::max(tensor.lost, in_boxes);
  if (in_boxes != tensor.lost) tensor.has_all_boxes = false;
  return tensor;
}

// True for the certificate members that are parsed. The others, mostly hashes, make up most of the
// file and are skipped.
bool is_wanted(std::size_t depth, std::string_view key) {
  static constexpr std::array<std::string_view, 4> kTop = {"schema", "lossless", "tensors",
                                                           "entries"};
  static constexpr std::array<std::string_view, 12> kTensor = {
      "shape",           "kept",       "lost", "lost_boxes", "fill",         "fill_from",
      "fill_checkpoint", "more_boxes", "fqn",  "from",       "out_of_range", "damaged"};
  auto is_in = [&](const auto& keys) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  return depth == 1 ? is_in(kTop) : depth != 3 || is_in(kTensor);
}

constexpr std::size_t kDeepest = 8;  // numbers of boxes are at level 7

// Builds only the wanted members and passes on each tensor at its end: freeing a tree of
// 250,000 tensors takes 0.5 s without a check for cancellation. nlohmann's callback
// rescans the siblings at the end of every object: a certificate of 92,000 tensors took
// minutes.
class WantedJson final : public nlohmann::json_sax<In> {
 public:
  explicit WantedJson(const Progress* progress) : progress_(progress) {}
  const In& root() const { return root_; }  // without its tensors
  std::vector<FilledTensor> release_tensors();

  bool null() override { return add(In()); }
  bool boolean(bool value) override { return add(In(value)); }
  bool number_integer(number_integer_t value) override { return add(In(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(In(value)); }
  bool number_float(number_float_t value, const string_t&) override { return add(In(value)); }
  bool string(string_t& value) override {
    return !is_cancelled(progress_) && add(In(std::move(value)));
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(In::object()); }
  bool start_array(std::size_t) override { return open(In::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    if (is_cancelled(progress_)) return false;
    if (skipped_containers_ != 0) return true;
    wanted_ = is_wanted(open_.size(), value);
    if (open_.size() == 1) in_tensors_ = value == "tensors";
    if (open_.size() == 1 && in_tensors_) tensors_.clear();  // the later one wins
    if (open_.size() == 2) fqn_ = value;
    key_ = std::move(value);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool keeps() const {
    if (skipped_containers_ != 0 || open_.size() > kDeepest) return false;
    return open_.empty() || open_.back()->is_array() || wanted_;
  }
  In& put(In value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_object()) return (*open_.back())[key_] = std::move(value);
    open_.back()->push_back(std::move(value));
    return open_.back()->back();
  }
  bool add(In value) {
    if (keeps()) put(std::move(value));
    return true;
  }
  bool open(In value) {
    if (!keeps()) {
      ++skipped_containers_;
      return true;
    }
    // The address is stable: no sibling is added while it is open.
    open_.push_back(&put(std::move(value)));
    return true;
  }
  bool close() {
    if (skipped_containers_ != 0) {
      --skipped_containers_;
      return true;
    }
    const In& ended = *open_.back();
    open_.pop_back();
    if (open_.size() != 2 || !in_tensors_ || !open_.back()->is_object()) return true;
    if (auto tensor = filled_tensor_from_json(unescape_name(fqn_), ended, looks_))
      tensors_.push_back(std::move(*tensor));
    open_.back()->erase(fqn_);
    return true;
  }

  const Progress* progress_;
  In root_;
  std::vector<In*> open_;
  std::size_t skipped_containers_ = 0;  // skipped objects and arrays
  std::string key_, fqn_;
  bool wanted_ = true, in_tensors_ = false;
  std::vector<FilledTensor> tensors_;
  std::size_t looks_ = 20'000'000;
};

// Tensors sorted by name; of duplicates the last one counts, as usual in JSON.
std::vector<FilledTensor> WantedJson::release_tensors() {
  std::vector<std::uint32_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), 0u);
  auto before = [&](std::uint32_t a, std::uint32_t b) { return tensors_[a].fqn < tensors_[b].fqn; };
  cancellable_stable_sort(order.begin(), order.end(), before, progress_);
  std::vector<FilledTensor> taken;
  taken.reserve(tensors_.size());
  for (std::uint32_t at : cancellable_range(order, progress_)) {
    if (!taken.empty() && taken.back().fqn == tensors_[at].fqn) taken.pop_back();
    taken.push_back(std::move(tensors_[at]));
  }
  if (!is_cancelled(progress_)) return taken;
  destroy_in_background(std::pair(std::move(taken), std::move(tensors_)));
  return {};
}

}  // namespace

std::string filled_to_json(const FilledRecord& record, std::size_t most_boxes) {
  std::int64_t kept = 0, lost = 0;
  FilledJson tensors = FilledJson::object();
  // push_back, because operator[] of an ordered object searches linearly.
  auto& entries = tensors.get_ref<FilledJson::object_t&>();
  for (const FilledTensor& tensor : record.tensors) {
    if (tensor.lost == 0) continue;
    entries.push_back({escape_name(tensor.fqn), json_of(tensor, most_boxes)});
    kept += tensor.total() - tensor.lost;
    lost += tensor.lost;
  }
  FilledJson out = {
      {"schema", kJsonSchema}, {"total", kept + lost}, {"kept", kept}, {"lost", lost}};
  out["tensors"] = std::move(tensors);
  for (const FilledEntry& entry : record.entries)
    out["entries"].push_back({{"fqn", escape_name(entry.fqn)}, {"from", escape_name(entry.from)}});
  bool file = most_boxes == SIZE_MAX;
  return out.dump(file ? 1 : -1, ' ', false, FilledJson::error_handler_t::replace) +
         (file ? "\n" : "");
}

std::optional<FilledRecord> filled_from_json(std::string_view text, const Progress* progress) {
  WantedJson wanted(progress);
  if (!In::sax_parse(text, &wanted)) return std::nullopt;
  const In& json = wanted.root();
  const In& schema = member_or_null(json, "schema");
  if (!schema.is_string() || !is_readable_schema(schema.get_ref<const std::string&>()))
    return std::nullopt;
  if (!member_or_null(json, "tensors").is_object()) return std::nullopt;
  FilledRecord record;
  if (const In& lossless = member_or_null(json, "lossless"); lossless.is_boolean())
    record.lossless = lossless.get<bool>();
  record.tensors = wanted.release_tensors();
  const In& entries = member_or_null(json, "entries");
  for (std::size_t i = 0; entries.is_array() && i < entries.size(); ++i) {
    FilledEntry entry{text_of(member_or_null(entries[i], "fqn")),
                      text_of(member_or_null(entries[i], "from"))};
    if (!entry.fqn.empty()) record.entries.push_back(std::move(entry));
  }
  return record;
}

}  // namespace shw
