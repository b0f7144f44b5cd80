#include "core/formats/common/weight_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/printable.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/byte_order_mark.h"
#include "core/formats/common/python_json.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxIndex = 256 << 20;

// Parses "weight_map" of the index: tensor name to file name.
class IndexEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit IndexEvents(WeightMap& map) : map_(map) {}
  // Names whose value in the index is not a file name.
  const std::vector<std::string>& names_without_file() const { return without_file_; }
  bool has_metadata() const { return has_metadata_; }
  std::size_t maps() const { return maps_; }
  std::optional<std::uint64_t> total() const { return total_; }
  const std::string& groups() const { return groups_; }  // metadata.param_groups
  bool null() override { return note_key_without_file(); }
  bool boolean(bool) override { return note_key_without_file(); }
  bool number_integer(std::int64_t) override { return note_key_without_file(); }
  bool number_unsigned(std::uint64_t number) override {
    if (depth_ == 2 && has_metadata_ && is_in_metadata_ && key_ == "total_size") total_ = number;
    return note_key_without_file();
  }
  bool number_float(double, const std::string&) override { return note_key_without_file(); }
  bool binary(nlohmann::json::binary_t&) override { return note_key_without_file(); }
  bool string(std::string& text) override {
    if (depth_ == 2 && has_metadata_ && is_in_metadata_ && key_ == "param_groups") groups_ = text;
    if (depth_ == 2 && inside_) place(std::move(text));
    return true;
  }
  bool key(std::string& text) override {
    if (depth_ == 1) {
      inside_ = text == "weight_map";
      if (inside_) restart_map();
      is_in_metadata_ = text == "metadata";
      if (is_in_metadata_) has_metadata_ = false;  // metadata is repeated: the last one counts
    }
    if (depth_ == 2) key_ = text;
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ == 1 && is_in_metadata_) has_metadata_ = true;
    return note_key_without_file() && ++depth_ < 64;
  }
  bool start_array(std::size_t) override { return note_key_without_file() && ++depth_ < 64; }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  // Python keeps the last of repeated keys.
  void restart_map() {
    ++maps_;
    map_.clear();
    place_of_.clear();
    without_file_.clear();
  }
  // "./a" is the file "a"; for duplicate names the last one
  // wins.
  void place(std::string file) {
    while (file.starts_with("./")) file.erase(0, file.find_first_not_of('/', 1));
    auto [found, is_new] = place_of_.try_emplace(key_, map_.size());
    if (is_new)
      map_.emplace_back(key_, std::move(file));
    else
      map_[found->second].second = std::move(file);
  }
  bool note_key_without_file() {
    if (depth_ == 2 && inside_) without_file_.push_back(key_);
    return true;
  }
  WeightMap& map_;
  std::vector<std::string> without_file_;
  std::unordered_map<std::string, std::size_t> place_of_;
  std::string key_;
  bool inside_ = false;
  bool is_in_metadata_ = false, has_metadata_ = false;
  std::size_t maps_ = 0;
  std::optional<std::uint64_t> total_;
  std::string groups_;
  int depth_ = 0;
};

// transformers 4 and 5 assign to index["metadata"] and fail without it
// (get_checkpoint_shard_files); programs that read only weight_map load the files.
Finding missing_metadata_finding(const std::string& path) {
  Finding finding = bad_record_finding(path,
                                       "The index has no object \"metadata\", so transformers "
                                       "fails; readers that need only the weight_map load it.");
  finding.severity = Severity::kWarning;
  return finding;
}

// ColossalAI's index of a split optimizer names the file of its groups there, which is loaded
// before the states.
Finding missing_groups_finding(const std::string& path, const std::string& groups) {
  Finding finding = bad_record_finding(
      groups, fmt::format("{} is missing: {} says that it holds the optimizer's groups (learning "
                          "rates, and which state belongs to which parameter), so a load fails.",
                          groups, path));
  finding.subjects.push_back(path);
  return finding;
}

bool is_missing_file(const Directory& directory, const std::string& file) {
  return !file.empty() && is_safe_relative_path(file) &&
         directory.stat(file).kind == EntryKind::kMissing;
}

// Readers of the first map, or of both, load other files.
Finding several_maps_finding(const std::string& path, std::size_t count) {
  Finding finding =
      bad_record_finding(path, fmt::format("The index has {} objects \"weight_map\": like Python, "
                                           "the last one was used; other readers may use another.",
                                           count));
  finding.severity = Severity::kWarning;
  return finding;
}

std::vector<std::string> files_of(const WeightMap& map) {
  const std::vector<std::string_view> files = sorted_index_files(map);
  return {files.begin(), files.end()};
}

}  // namespace

// Neighbouring entries mostly name one file, so few names are sorted.
std::vector<std::string_view> sorted_index_files(const WeightMap& map) {
  std::vector<std::string_view> files;
  for (const auto& [fqn, path] : map) {
    if (files.empty() || files.back() != path) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

std::optional<WeightMap> read_weight_map(const Directory& directory, const std::string& path,
                                         std::optional<Finding>& finding,
                                         std::optional<std::uint64_t>* total) {
  auto refuse = [&](std::string cause) {
    finding = bad_record_finding(path, std::move(cause));
    return std::nullopt;
  };
  auto source = directory.open(path);
  if (!source) return refuse("The index cannot be read: " + source.error().message + ".");
  if ((*source)->size() > kMaxIndex) return refuse("The index is too large for an index.");
  auto bytes = read_bytes(**source, 0, (*source)->size());
  if (!bytes) return refuse("The index cannot be read: " + bytes.error().message + ".");
  WeightMap map;
  IndexEvents events(map);
  const std::string text =
      replace_non_json_floats({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  // The parser accepts a byte order mark, Python's json does not.
  if (begins_with_byte_order_mark(*bytes)) {
    finding = bad_record_finding(path,
                                 "The index begins with a byte order mark (EF BB BF at byte 0), "
                                 "which Python's json refuses; all files were read instead.",
                                 0);
    return std::nullopt;
  }
  // The parser treats a zero byte as the end.
  bool cut_short = std::find(bytes->begin(), bytes->end(), std::byte{0}) != bytes->end();
  if (cut_short || !nlohmann::json::sax_parse(text, &events) || map.empty()) {
    refuse("The index is not a JSON object with a weight_map; all files were read instead.");
    finding->evidence.emplace_back("convert_to", std::string("safetensors"));
    return std::nullopt;
  }
  if (!events.names_without_file().empty()) {
    finding =
        bad_record_finding(path, fmt::format("The index names no file for {} of its tensors ({}).",
                                             events.names_without_file().size(),
                                             short_list_text(events.names_without_file())));
    finding->subjects.insert(finding->subjects.begin(), events.names_without_file().begin(),
                             events.names_without_file().end());
  }
  if (!finding && is_missing_file(directory, events.groups()))
    finding = missing_groups_finding(path, events.groups());
  if (!finding && events.maps() > 1) finding = several_maps_finding(path, events.maps());
  if (!finding && !events.has_metadata()) finding = missing_metadata_finding(path);
  if (total != nullptr) *total = events.total();
  return map;
}

// transformers looks for the single file first and then ignores the index (5.24,
// _get_resolved_checkpoint_files); vLLM and others use the index. Other stems belong to diffusers,
// which looks for the index first.
bool is_ignored_by_transformers(const Directory& directory, const IndexNames& names,
                                const std::string& index) {
  return index == names.usual && directory.stat(std::string(names.single)).kind == EntryKind::kFile;
}

std::vector<std::string> missing_index_files(const Directory& directory, const WeightMap& map) {
  std::vector<std::string> files = files_of(map);
  std::erase_if(files, [&](const std::string& path) {
    return is_safe_relative_path(path) && directory.stat(path).kind != EntryKind::kMissing;
  });
  return files;
}

Finding index_without_files_finding(const Directory& directory, const IndexNames& names,
                                    const std::string& index, const WeightMap& map) {
  const bool is_passed = is_ignored_by_transformers(directory, names, index);
  Finding finding = bad_record_finding(
      index,
      fmt::format(
          "The index names {}, but none of that is here: {}. All files were read without the "
          "index.",
          short_list_text(files_of(map)),
          is_passed
              ? fmt::format(
                    "transformers loads {} without the index; readers that use the index fail",
                    names.single)
              : "a loader that follows the index fails"));
  if (is_passed) finding.severity = Severity::kWarning;
  return finding;
}

void report_ignored_index(CheckpointBuilder& builder, const IndexNames& names,
                          const std::string& index, const WeightMap& map,
                          const Directory& directory) {
  const std::string single(names.single);
  std::vector<std::string> others = files_of(map);
  std::erase(others, single);
  if (!is_ignored_by_transformers(directory, names, index) || others.empty()) return;
  Finding finding = bad_record_finding(
      single,
      fmt::format("{} is next to {}: transformers loads that one file and ignores the "
                  "index; readers that use the index load {}. Here the index was used. Move "
                  "away the one that is not meant: `shardwright diff {} {}` says how "
                  "the two differ.",
                  single, index, short_list_text(others), shell_word(directory.name()),
                  shell_word(directory.name() + "/" + single)));
  finding.severity = Severity::kWarning;
  finding.evidence = {{"index", index}, {"transformers_loads", single}};
  finding.subjects.push_back(index);
  builder.add_finding(std::move(finding));
}

}  // namespace shw
