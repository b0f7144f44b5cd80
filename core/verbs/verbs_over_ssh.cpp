#include "core/verbs/verbs_over_ssh.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/json.h"
#include "core/base/version.h"
#include "core/io/remote/remote_path.h"
#include "core/io/remote/ssh_shardwright.h"
#include "core/report/read_check.h"
#include "core/report/report.h"

namespace shw::verbs {
namespace {

// The worst exit code of a verb that has answered: something could not be examined.
constexpr int kWorstAnswer = 2;

std::vector<std::string> check_words(const VerbOptions& options) {
  std::vector<std::string> words = {"check", options.checkpoint, "--data", "--json"};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--spec", options.spec);
  add("--against", options.against);
  add("--mesh", options.mesh);
  return words;
}

void adopt_plan_inputs(const CheckReport& before, CheckReport& report) {
  report.spec = before.spec;
  std::unordered_map<std::string, const Finding*> by_text;
  for (const Finding& one : before.findings) by_text.try_emplace(finding_to_json(one), &one);
  for (Finding& finding : report.findings) {
    const auto same = by_text.find(finding_to_json(finding));
    if (same == by_text.end()) continue;
    finding.diagnoses = same->second->diagnoses;
    finding.entries = same->second->entries;
  }
}

// True for the text of `hash`: "HASH  ...\n" for each tensor and file, then "HASH  total of ...\n".
bool are_hashes(std::string_view text) {
  constexpr std::size_t kDigits = 32;
  std::string_view rest;  // of the last line, behind the hash
  if (!text.ends_with('\n')) return false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::string_view hash = line.substr(0, kDigits);
    const bool is_hash =
        hash.size() == kDigits && (hash.find_first_not_of("0123456789abcdef") == hash.npos ||
                                   hash.find_first_not_of('-') == hash.npos);
    if (!is_hash || line.substr(kDigits, 2) != "  ") return false;
    rest = line.substr(kDigits + 2);
    text.remove_prefix(line.size() + 1);
  }
  return rest.starts_with("total of ");
}

// The error for remote output that is not an answer: the program could not run or was killed.
tl::unexpected<Error> without_answer(const RemotePlace& place, const RemoteAnswer& answer) {
  return fail(ErrorKind::kIo,
              "shardwright over there ended with exit code " + std::to_string(answer.code) +
                  (answer.message.empty() ? "" : ": " + answer.message),
              {place.shown});
}

// A name as an answer writes it: bytes that are not UTF-8 are replaced.
std::string name_as_in_json(std::string_view name) {
  using Tree = nlohmann::json;
  const std::string text = Tree(name).dump(-1, ' ', false, Tree::error_handler_t::replace);
  return Tree::parse(text).get<std::string>();
}

// One tensor of `volume` elements in the answer of `stats --json`.
TensorNumbers numbers_from_json(const nlohmann::json& json, std::optional<std::int64_t> volume) {
  const auto count = [&](const char* key) -> std::uint64_t {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
  };
  const auto number = [&](const char* key) -> std::optional<double> {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
  };
  Statistics read;
  const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(volume.value_or(0), 0));
  read.elements = std::min(count("elements"), most);
  read.nan = std::min(count("nan"), read.elements);
  read.infinite = std::min(count("inf"), read.elements - read.nan);
  read.zero = std::min(count("zero"), read.elements - read.nan - read.infinite);
  read.mean = number("mean");
  read.std = number("std");
  return {read.elements > 0, read.elements, read.nan,
          read.infinite,     read.zero,     sum_of_squares(read)};
}

}  // namespace

Result<CheckpointNumbers> numbers_over_ssh(const Checkpoint& checkpoint, const VerbOptions& options,
                                           Progress* progress) {
  SHW_TRY(const RemotePlace place, parse_remote(options.checkpoint));
  const std::vector<std::string> words = {"stats", options.checkpoint, "--json"};
  SHW_TRY(const RemoteAnswer answer, run_shardwright(words, place, progress));
  const auto json = parse_json<nlohmann::json>(answer.out).tree;
  if (answer.code > kWorstAnswer || !json.is_object() || !json.contains("tensors") ||
      !json["tensors"].is_object())
    return without_answer(place, answer);
  if (!json.contains("schema") || json["schema"] != kJsonSchema)
    return fail(ErrorKind::kUnsupported, "is an answer of another version of shardwright",
                {place.shown});
  CheckpointNumbers numbers;
  numbers.tensors.resize(checkpoint.tensor_count());
  std::unordered_map<std::string, std::size_t> tensors_of_name;
  for (TensorId tensor : checkpoint.tensors())
    ++tensors_of_name[name_as_in_json(checkpoint.fqn(tensor))];
  for (TensorId tensor : float_tensors(checkpoint)) {
    const std::string name = name_as_in_json(checkpoint.fqn(tensor));
    const auto found = json["tensors"].find(name);
    const bool is_there =
        found != json["tensors"].end() && found->is_object() && tensors_of_name[name] == 1;
    TensorNumbers& to = numbers.tensors[index_of(tensor)];
    if (is_there) to = numbers_from_json(*found, volume(checkpoint.shape(tensor)));
    if (!is_there || found->contains("unread") || found->contains("missing")) ++numbers.not_whole;
  }
  return numbers;
}

bool can_run_over_ssh(const VerbOptions& options) {
  if (!is_remote(options.checkpoint)) return false;
  const auto place = parse_remote(options.checkpoint);
  if (!place || place->kind != RemoteKind::kSsh) return false;
  const std::array paths{&options.spec, &options.against};
  const bool names_local_file = std::ranges::any_of(paths, [&](const std::string* path) {
    return !path->empty() && !is_on_machine(*path, *place);
  });
  if (names_local_file) return false;
  const auto found = find_shardwright(*place);
  return found && found->is_same;
}

Result<CheckReport> check_over_ssh(const VerbOptions& options, const CheckReport* before,
                                   Progress* progress) {
  SHW_TRY(const RemotePlace place, parse_remote(options.checkpoint));
  SHW_TRY(const RemoteAnswer answer, run_shardwright(check_words(options), place, progress));
  if (answer.out.empty()) return without_answer(place, answer);
  auto report = check_from_json(answer.out);
  if (!report && report.error().place.file.empty()) report.error().place.file = place.shown;
  if (report && before != nullptr) adopt_plan_inputs(*before, *report);
  return report;
}

Result<std::string> hash_over_ssh(const VerbOptions& options, Progress* progress) {
  SHW_TRY(const RemotePlace place, parse_remote(options.checkpoint));
  const std::vector<std::string> words = {"hash", options.checkpoint};
  SHW_TRY(RemoteAnswer answer, run_shardwright(words, place, progress));
  if (answer.out.empty() || answer.code > kWorstAnswer) return without_answer(place, answer);
  if (!are_hashes(answer.out))
    return fail(ErrorKind::kUnsupported, "is not an answer of `hash`", {place.shown});
  return std::move(answer.out);
}

}  // namespace shw::verbs
