#include "core/repair/run/request.h"

#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/repair/plan/json.h"
#include "core/repair/plan/stored_plan.h"

namespace shw {
namespace {

using OrderedJson = nlohmann::ordered_json;

// File names may contain invalid UTF-8.
std::string json_text(const std::string& text) {
  return OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string text_of(const OrderedJson& object, const char* key) {
  auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

constexpr const char* kPackedPlan = "plan_zstd";

// The JSON text up to the plan, which comes last.
std::string json_before_plan(const RepairRequest& request, std::string_view verb) {
  return R"({"verb": )" + json_text(std::string(verb)) + R"(, "checkpoint": )" +
         json_text(request.checkpoint) + R"(, "said": )" + json_text(request.said) +
         (request.integrity ? R"(, "integrity": true)" : "");
}

// Parses everything but the plan, whose tree may have millions of chunks; only notes that it
// exists.
OrderedJson parsed_without_plan(std::string_view json, bool& has_plan) {
  auto keeps = [&](int depth, OrderedJson::parse_event_t event, const OrderedJson& value) {
    const bool is_plan = depth == 1 && event == OrderedJson::parse_event_t::key && value == "plan";
    has_plan = has_plan || is_plan;
    return !is_plan;
  };
  return parse_json<OrderedJson>(json, keeps).tree;
}

}  // namespace

Result<std::string> request_to_json(const Store& store, std::string_view verb,
                                    const std::string& plan, const std::string& said,
                                    bool integrity) {
  SHW_TRY(std::string path, store.resolved(said));
  std::string request = json_before_plan({path, said, {}, integrity}, verb);
  const bool is_packed = !plan.starts_with('{');
  request.reserve(request.size() + plan.size() + 20);
  request += is_packed ? std::string(", \"") + kPackedPlan + "\": \"" : ", \"plan\": ";
  request += plan;
  request += is_packed ? "\"}" : "}";
  return request;
}

Result<RepairRequest> request_from_json(std::string_view json, std::string_view verb,
                                        const std::string& source) {
  bool has_plan = false;
  const OrderedJson parsed = parsed_without_plan(json, has_plan);
  RepairRequest request{text_of(parsed, "checkpoint"), text_of(parsed, "said"), {}};
  request.integrity = parsed.is_object() && parsed.contains("integrity");
  const std::string packed = text_of(parsed, kPackedPlan);
  bool is_whole = parsed.is_object() && has_plan == packed.empty() && !request.checkpoint.empty();
  if (!is_whole || text_of(parsed, "verb") != verb)
    return fail(ErrorKind::kDamaged, "does not record which result to make", {source});
  if (!packed.empty()) {
    auto plan = decode_stored_plan(packed);
    if (!plan) return fail(ErrorKind::kDamaged, "has a plan that cannot be unpacked", {source});
    request.plan = std::move(*plan);
    return request;
  }
  const std::string before = json_before_plan(request, verb) + ", \"plan\": ";
  if (json.starts_with(before) && json.ends_with('}')) {
    request.plan = json.substr(before.size(), json.size() - before.size() - 1);
    return request;
  }
  // The plan has another position or spacing than we write, so it is parsed.
  request.plan = parse_json<OrderedJson>(json).tree["plan"].dump(
      -1, ' ', false, OrderedJson::error_handler_t::replace);
  return request;
}

std::string verb_of_request(std::string_view json) {
  bool has_plan = false;
  return text_of(parsed_without_plan(json, has_plan), "verb");
}

std::string as_typed(const Store& store, const std::string& said, const std::string& resolved) {
  auto now = store.resolved(said);
  return !said.empty() && now && *now == resolved ? said : resolved;
}

}  // namespace shw
