#include "core/base/version.h"
#include "core/report/json.h"
#include "core/report/report.h"

namespace shw {
namespace {

// Bytes and seconds of all threads by stage; null if nothing was written.
Json stages_json(const Progress* progress) {
  if (progress == nullptr) return nullptr;
  Json out = Json::object();
  for (std::size_t i = 0; i < kStages; ++i) {
    const StageUsage& work = progress->stages[i];
    if (work.nanoseconds == 0) continue;
    out[std::string(name(static_cast<Stage>(i)))] = {
        {"bytes", work.bytes.load()},
        {"thread_seconds", static_cast<double>(work.nanoseconds) * 1e-9}};
  }
  if (out.empty()) return nullptr;
  out["longest"] = name(longest(progress->stages));
  return out;
}

// Null if there was only one process.
Json transport_json(const TeamTraffic& traffic) {
  if (traffic.by.empty()) return nullptr;
  return {{"used", traffic.by}, {"why", traffic.why}, {"bytes", traffic.bytes}};
}

}  // namespace

Json device_json(const DeviceUse& use) {
  Json out = {{"used", use.device}, {"why", use.why}};
  if (!use.failed.empty()) out["failed"] = use.failed;
  const auto limit = slowest(use.works);
  if (!limit) return out;
  Json stages = Json::object();
  for (std::size_t i = 0; i < kDeviceStages; ++i)
    stages[std::string(name(static_cast<DeviceStage>(i)))] = {{"bytes", use.works[i].bytes},
                                                              {"seconds", use.works[i].seconds}};
  stages["longest"] = name(*limit);
  out["stages"] = std::move(stages);
  return out;
}

static Json round_trip_json(const RoundTripResult& back) {
  return {{"program", back.program.empty() ? Json() : Json(back.program)},
          {"equal", back.equal},
          {"differ", back.differ},
          {"padding", back.padding},
          {"without", back.without},
          {"left_out", back.left_out},
          {"left_out_why", back.left_out_why},
          {"as_settings", back.as_settings}};
}

static Json sent_json(const UploadResult& sent) {
  return {{"to", sent.to}, {"files", sent.files}, {"bytes", sent.bytes}, {"kept", sent.kept}};
}

static Json result_json(const RepairResult& result) {
  return {{"schema", kJsonSchema},
          {"output", result.output},
          {"certificate", result.certificate},
          {"lossless", result.lossless},
          {"out_of_range", result.out_of_range},
          {"of_other_ranks", result.of_other_ranks},
          {"left_out", result.left_out},
          {"damage", result.damage},
          {"device", device_json(result.device)},
          {"transport", transport_json(result.traffic)}};
}

std::string repair_to_json(const RepairResult& result, std::span<const Finding> remaining,
                           const Progress* progress) {
  Json out = result_json(result);
  out["remaining"] = Json::array();
  for (const Finding& finding : remaining) out["remaining"].push_back(finding_json(finding));
  out["stages"] = stages_json(progress);
  if (result.way_back) out["way_back"] = round_trip_json(*result.way_back);
  if (result.sent) out["uploaded"] = sent_json(*result.sent);
  return pretty_json_line(out);
}

std::string upload_to_json(const UploadResult& sent) {
  return pretty_json_line({{"schema", kJsonSchema}, {"uploaded", sent_json(sent)}});
}

std::string finished_to_json(const RepairResult& result) {
  return pretty_json_line(result_json(result));
}

std::string verify_to_json(const VerifyReport& report) {
  Json out = {{"schema", kJsonSchema},
              {"verdict", name(report.outcome)},
              {"reasons", report.reasons},
              {"tensors", report.tensors},
              {"kept", report.kept},
              {"lost", report.lost},
              {"out_of_range", report.out_of_range},
              {"damaged", report.damaged}};
  if (!report.against) return pretty_json_line(out);
  Json differences = Json::array();
  for (const Difference& one : report.against->differences) {
    differences.push_back({{"tensor", one.tensor},
                           {"index", one.index},
                           {"file", one.file},
                           {"value", one.value},
                           {"expected", one.expected}});
  }
  out["against"] = {{"source", report.against->source},
                    {"compared", report.against->compared},
                    {"tiles_that_differ", report.against->tiles_that_differ},
                    {"differences", std::move(differences)}};
  return pretty_json_line(out);
}

}  // namespace shw
