#include "core/formats/torch_file/storage_places.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "core/base/parse_text.h"
#include "core/base/words.h"

namespace shw {
namespace {

enum class DeviceNameKind : std::uint8_t { kTorch, kBackend, kUnknown };

// Devices that torch.serialization registers itself (2.6 to 2.15); if a device is missing on the
// machine, torch's own error is clear. Names without a number are compared whole: "cpu:0" is
// unknown.
constexpr auto kWithoutNumber = std::to_array<std::string_view>({"cpu", "meta"});
constexpr auto kWithNumber =
    std::to_array<std::string_view>({"cuda", "hpu", "xpu", "mtia", "privateuseone"});
// Backends that packages outside of torch register under their own names.
constexpr auto kBackends = std::to_array<std::string_view>(
    {"npu", "mlu", "musa", "gcu", "sdaa", "supa", "ipu", "maia", "spyre", "openreg"});

// True for the number in "cuda:1" as torch.device parses it: no sign, no leading zero.
bool is_device_number(std::string_view text) {
  if (text.empty() || text.size() > 3 || (text.size() > 1 && text[0] == '0')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

DeviceNameKind device_name_kind(std::string_view place) {
  // torch only compares this prefix.
  if (is_one_of(place, kWithoutNumber) || place.starts_with("mps")) return DeviceNameKind::kTorch;
  const std::size_t colon = place.find(':');
  const std::string_view device = place.substr(0, colon);
  if (colon != std::string_view::npos && !is_device_number(place.substr(colon + 1)))
    return DeviceNameKind::kUnknown;
  if (is_one_of(device, kWithNumber)) return DeviceNameKind::kTorch;
  return is_one_of(device, kBackends) ? DeviceNameKind::kBackend : DeviceNameKind::kUnknown;
}

// The location text in a storage's persistent id, and its offset.
std::optional<std::pair<std::string_view, std::size_t>> place_in(const PickleTree& tree,
                                                                 NodeId node) {
  if (tree.kind(node) != NodeKind::kPersistentId) return std::nullopt;
  auto ids = tree.items(node);
  auto id = ids.size() == 1 ? tree.items(ids[0]) : std::span<const NodeId>{};
  if (id.size() < 5 || tree.text(id[0]) != "storage") return std::nullopt;
  auto text = tree.text(id[3]);
  if (!text) return std::nullopt;
  return std::pair(*text, static_cast<std::size_t>(tree.at(id[3])));
}

struct Places {
  std::map<std::string_view, std::int64_t> storages = {};  // number of storages by location
  std::size_t first_at = 0;
};

std::string words_of(const Places& places) {
  std::vector<std::string> words;
  for (const auto& [place, count] : places.storages) words.push_back(fmt::format("\"{}\"", place));
  return short_list_text(words);
}

Finding finding_of(const Places& places, const std::string& path) {
  std::int64_t count = 0;
  for (const auto& [place, storages] : places.storages) count += storages;
  Finding finding{.rule = "bad-record", .subjects = {path}};
  finding.evidence = {{"device", std::string(places.storages.begin()->first)},
                      {"storages", count},
                      {"offset", static_cast<std::int64_t>(places.first_at)}};
  return finding;
}

Finding unknown_devices_finding(const Places& places, const std::string& path) {
  Finding finding = finding_of(places, path);
  finding.severity = Severity::kWarning;
  finding.cause = fmt::format(
      "torch.load fails at {}: a storage in it says that it was on the device {}, which torch does "
      "not know. Either a package that adds such a device wrote it, or the name is damaged. The "
      "tensor bytes are complete: torch.load(FILE, map_location=\"cpu\") loads it, and "
      "`shardwright "
      "convert --to torch` writes a file without the device name.",
      path, words_of(places));
  return finding;
}

Finding backend_devices_finding(const Places& places, const std::string& path) {
  Finding finding = finding_of(places, path);
  finding.severity = Severity::kInfo;
  finding.cause = fmt::format(
      "{} was saved from the device {}, which an extension package adds: torch.load needs that "
      "package, or map_location=\"cpu\".",
      path, words_of(places));
  return finding;
}

}  // namespace

std::vector<Finding> storage_device_findings(const PickleTree& tree, const std::string& path) {
  Places unknown, backends;
  for (std::uint32_t i = 0; i < tree.node_count(); ++i) {
    auto place = place_in(tree, NodeId{i});
    if (!place) continue;
    const DeviceNameKind kind = device_name_kind(place->first);
    if (kind == DeviceNameKind::kTorch) continue;
    Places& places = kind == DeviceNameKind::kUnknown ? unknown : backends;
    if (places.storages.empty()) places.first_at = place->second;
    ++places.storages[place->first];
  }
  std::vector<Finding> findings;
  if (!unknown.storages.empty()) findings.push_back(unknown_devices_finding(unknown, path));
  if (!backends.storages.empty()) findings.push_back(backend_devices_finding(backends, path));
  return findings;
}

}  // namespace shw
