#include "core/verbs/verbs_over_ssh.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/json.h"
#include "core/io/remote/remote_path.h"
#include "core/io/remote/ssh_shardwright.h"
#include "core/report/read_check.h"

namespace shw::verbs {
namespace {

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
  for (Finding& finding : report.findings) {
    auto same = std::ranges::find_if(before.findings, [&](const Finding& one) {
      return one.rule == finding.rule && one.subjects == finding.subjects;
    });
    if (same == before.findings.end()) continue;
    finding.diagnoses = same->diagnoses;
    finding.entries = same->entries;
  }
}

// An answer that is no text of the verb: of a program that could not run, or was killed.
tl::unexpected<Error> without_answer(const RemotePlace& place, const RemoteAnswer& answer) {
  return fail(ErrorKind::kIo,
              "shardwright over there ended with exit code " + std::to_string(answer.code) +
                  (answer.message.empty() ? "" : ": " + answer.message),
              {place.shown});
}

// One tensor in the answer of `stats --json`.
TensorNumbers numbers_from_json(const nlohmann::json& json) {
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
  read.elements = count("elements");
  read.nan = std::min(count("nan"), read.elements);
  read.infinite = std::min(count("inf"), read.elements - read.nan);
  read.zero = count("zero");
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
  if (!json.is_object() || !json.contains("tensors") || !json["tensors"].is_object())
    return without_answer(place, answer);
  CheckpointNumbers numbers;
  numbers.tensors.resize(checkpoint.tensor_count());
  for (TensorId tensor : float_tensors(checkpoint)) {
    const auto found = json["tensors"].find(checkpoint.fqn(tensor));
    const bool is_there = found != json["tensors"].end() && found->is_object();
    TensorNumbers& to = numbers.tensors[index_of(tensor)];
    if (is_there) to = numbers_from_json(*found);
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
  return !names_local_file && has_shardwright(*place).value_or(false);
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
  if (answer.out.empty() || answer.code > 2) return without_answer(place, answer);
  return std::move(answer.out);
}

}  // namespace shw::verbs
