#include "core/repair/run/config_dtype.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/json.h"
#include "core/formats/common/python_json.h"
#include "core/io/read_whole.h"
#include "core/repair/run/made_files.h"

namespace shw {
namespace {

constexpr const char* kConfig = "config.json";
constexpr std::uint64_t kMaxConfigText = std::uint64_t{4} << 20;

// Finds the dtype of most floating elements.
class MajorityDtype {
 public:
  void add(Dtype dtype, ExtentsView shape) {
    if (dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16 ||
        dtype == Dtype::kFloat64)
      elements_[dtype] += volume(shape).value_or(0);
  }
  std::optional<Dtype> find() const {
    auto most = std::max_element(elements_.begin(), elements_.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == elements_.end() ? std::nullopt : std::optional(most->first);
  }

 private:
  std::map<Dtype, std::int64_t> elements_;
};

// Replaces the dtype in the config and its nested configs; returns whether it was there.
bool replace_dtype(nlohmann::ordered_json& config, Dtype from, Dtype to) {
  bool is_changed = false;
  for (auto& [key, value] : config.items()) {
    if (value.is_object()) is_changed = replace_dtype(value, from, to) || is_changed;
    if ((key != "dtype" && key != "torch_dtype") || value != std::string(name(from))) continue;
    value = std::string(name(to));
    is_changed = true;
  }
  return is_changed;
}

// The new text; nullopt if nothing changes or the file cannot be read.
std::optional<std::string> changed_config(const Directory& directory, Dtype from, Dtype to) {
  auto source = directory.open(kConfig);
  auto text = source ? read_whole_text(**source, kMaxConfigText) : Result<std::string>("");
  if (!text) return std::nullopt;
  auto parsed = parse_json<nlohmann::ordered_json>(quote_non_json_numbers(*text));
  if (!parsed.problem.empty() || !replace_dtype(parsed.tree, from, to)) return std::nullopt;
  return unquote_non_json_numbers(
      parsed.tree.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace

void update_config_dtype(const Checkpoint& source, FolderRun& run) {
  auto config = std::find_if(run.copied.begin(), run.copied.end(),
                             [](const Entry& entry) { return entry.path == kConfig; });
  if (config == run.copied.end()) return;
  MajorityDtype before, after;
  for (const OutputTensor& tensor : run.outputs.tensors) {
    after.add(tensor.dtype, tensor.shape);
    if (tensor.before) before.add(source.dtype(*tensor.before), source.shape(*tensor.before));
  }
  const auto from = before.find(), to = after.find();
  if (!from || !to || from == to) return;
  auto text = changed_config(*source.directory(), *from, *to);
  if (!text) return;
  run.copied.erase(config);
  const auto bytes = std::as_bytes(std::span(*text));
  replace_copied_file(kConfig, Bytes(bytes.begin(), bytes.end()), run);
}

}  // namespace shw
