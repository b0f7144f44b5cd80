#include "core/verbs/verbs_over_ssh.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/json.h"
#include "core/base/version.h"
#include "core/io/remote/remote_path.h"
#include "core/io/remote/ssh_shardwright.h"
#include "core/report/read_answers.h"
#include "core/report/read_check.h"
#include "core/report/report.h"
#include "core/verbs/plan_file.h"

namespace shw::verbs {
namespace {

// The worst exit code of a verb that has answered: something could not be examined.
constexpr int kWorstAnswer = 2;

// The words of `check` or `plan` of every byte.
std::vector<std::string> arguments_of_findings_command(const char* verb,
                                                       const VerbOptions& options) {
  std::vector<std::string> words = {verb, options.checkpoint, "--data", "--json"};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--spec", options.spec);
  add("--against", options.against);
  add("--mesh", options.mesh);
  if (words.front() == "plan") add("--fill", options.fill);
  return words;
}

void copy_diagnoses_from_local_report(const CheckReport& before, CheckReport& report) {
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
tl::unexpected<Error> no_answer_error(const RemotePlace& place, const RemoteAnswer& answer) {
  return fail(ErrorKind::kIo,
              "shardwright on the remote machine ended with exit code " +
                  std::to_string(answer.code) +
                  (answer.message.empty() ? "" : ": " + answer.message),
              {place.shown});
}

// A name as an answer writes it: bytes that are not UTF-8 are replaced.
std::string name_as_in_json(std::string_view name) {
  using Tree = nlohmann::json;
  const std::string text = Tree(name).dump(-1, ' ', false, Tree::error_handler_t::replace);
  return Tree::parse(text).get<std::string>();
}

constexpr std::array<std::string_view, 3> kReadKeys{"schema", "error", "tensors"};
constexpr std::array<std::string_view, 8> kReadNumbers{"elements", "nan", "inf",    "zero",
                                                       "mean",     "std", "unread", "missing"};
// More values than the kept keys of one tensor have, and of the answer besides its tensors.
constexpr std::size_t kMaxValuesOfTensor = 32, kMaxOtherValues = 1000;

// Leaves out what numbers_from_json() does not read, such as histograms, before it takes memory.
struct NumbersFilter {
  std::size_t most;
  std::size_t count = 0;
  int left_out = std::numeric_limits<int>::max();  // depth of the key whose value is left out

  static bool is_read(int depth, const std::string& key) {
    if (depth == 1) return std::ranges::find(kReadKeys, key) != kReadKeys.end();
    return depth != 3 || std::ranges::find(kReadNumbers, key) != kReadNumbers.end();
  }
  bool operator()(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::key && depth <= left_out)
      left_out = is_read(depth, value.get_ref<const std::string&>())
                     ? std::numeric_limits<int>::max()
                     : depth;
    const bool is_end = event == Event::object_end || event == Event::array_end;
    if (depth >= left_out) return is_end;
    if (!is_end && count <= most) ++count;
    return count <= most;
  }
};

template <class T>
Result<T> with_path_in_error(Result<T> read, const std::string& path) {
  if (!read && read.error().place.file.empty()) read.error().place.file = without_secrets(path);
  return read;
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
  if (answer.out.empty()) return no_answer_error(place, answer);
  SHW_CHECK(with_path_in_error(check_answer(answer.out, "stats"), options.checkpoint));
  NumbersFilter filter{checkpoint.tensor_count() * kMaxValuesOfTensor + kMaxOtherValues};
  const auto json = parse_json<nlohmann::json>(answer.out, std::ref(filter)).tree;
  if (filter.count > filter.most)
    return fail(ErrorKind::kUnsupported, "holds more values than the checkpoint has numbers",
                {place.shown});
  if (answer.code > kWorstAnswer || !json.is_object() || !json.contains("tensors") ||
      !json["tensors"].is_object())
    return no_answer_error(place, answer);
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
    if (!is_there || found->contains("unread") || found->contains("missing"))
      ++numbers.partly_read_tensors;
  }
  return numbers;
}

SshUse ssh_use(const VerbOptions& options) {
  if (!is_remote(options.checkpoint)) return {};
  const auto place = parse_remote(options.checkpoint);
  if (!place || place->kind != RemoteKind::kSsh) return {};
  const std::array paths{&options.spec, &options.against};
  const bool names_local_file = std::ranges::any_of(paths, [&](const std::string* path) {
    return !path->empty() && !is_on_machine(*path, *place);
  });
  if (names_local_file) return {false, "The spec or the reference is not a file on that machine."};
  const auto found = find_shardwright(*place);
  if (!found)
    return {false,
            "Shardwright was not found on the remote machine: " + found.error().message + "."};
  if (!found->is_same) return {false, "Shardwright " + version_mismatch_text(*found) + "."};
  return {true};
}

bool is_on_machine_of(const VerbOptions& options, const std::string& path) {
  const auto place = parse_remote(options.checkpoint);
  return place && is_on_machine(path, *place);
}

Result<CheckReport> check_over_ssh(const VerbOptions& options, const CheckReport* before,
                                   Progress* progress) {
  SHW_TRY(const RemotePlace place, parse_remote(options.checkpoint));
  SHW_TRY(const RemoteAnswer answer,
          run_shardwright(arguments_of_findings_command("check", options), place, progress));
  if (answer.out.empty()) return no_answer_error(place, answer);
  auto report = check_from_json(answer.out);
  if (!report && report.error().place.file.empty()) report.error().place.file = place.shown;
  if (report && before != nullptr) copy_diagnoses_from_local_report(*before, *report);
  return report;
}

namespace {

// The JSON that a verb answers with; its reader says what is wrong with it.
Result<std::string> json_over_ssh(std::span<const std::string> words, const std::string& path,
                                  Progress* progress) {
  SHW_TRY(const RemotePlace place, parse_remote(path));
  SHW_TRY(RemoteAnswer answer, run_shardwright(words, place, progress));
  if (answer.out.empty()) return no_answer_error(place, answer);
  return std::move(answer.out);
}

}  // namespace

Result<Plan> plan_over_ssh(const Opened& opened, const VerbOptions& options, Progress* progress) {
  if (options.fill.starts_with("from:"))
    return fail(ErrorKind::kUsage,
                "a plan that fills from a checkpoint cannot be made on the remote machine",
                {without_secrets(options.checkpoint)},
                "Make the plan here, or run `shardwright plan` on the remote machine.");
  SHW_TRY(const std::string text, json_over_ssh(arguments_of_findings_command("plan", options),
                                                options.checkpoint, progress));
  SHW_CHECK(with_path_in_error(check_answer(text, "plan"), options.checkpoint));
  return with_path_in_error(read_plan_text(opened, text), options.checkpoint);
}

Result<VerifyReport> verify_over_ssh(const std::string& path, Progress* progress) {
  const std::vector<std::string> words = {"verify", path, "--json"};
  SHW_TRY(const std::string text, json_over_ssh(words, path, progress));
  return with_path_in_error(verify_from_json(text), path);
}

Result<CheckpointDifference> diff_over_ssh(const std::string& a, const std::string& b,
                                           Progress* progress) {
  const std::vector<std::string> words = {"diff", a, b, "--data", "--json"};
  SHW_TRY(const std::string text, json_over_ssh(words, a, progress));
  return with_path_in_error(difference_from_json(text), a);
}

Result<std::string> hash_over_ssh(const VerbOptions& options, Progress* progress) {
  SHW_TRY(const RemotePlace place, parse_remote(options.checkpoint));
  const std::vector<std::string> words = {"hash", options.checkpoint};
  SHW_TRY(RemoteAnswer answer, run_shardwright(words, place, progress));
  if (answer.out.empty() || answer.code > kWorstAnswer) return no_answer_error(place, answer);
  if (!are_hashes(answer.out))
    return fail(ErrorKind::kUnsupported, "is not an answer of `hash`", {place.shown});
  return std::move(answer.out);
}

}  // namespace shw::verbs
