#include "core/repair/request.h"

#include <nlohmann/json.hpp>

#include "core/repair/json.h"

namespace shw {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Names of files may be no UTF-8.
std::string json_text(const std::string& text) {
  return OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string text_of(const OrderedJson& object, const char* key) {
  auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

Result<std::string> request_to_json(const Store& store, std::string_view verb,
                                    const std::string& plan, const std::string& said,
                                    bool integrity) {
  SHW_TRY(std::string path, store.resolved(said));
  return R"({"verb": )" + json_text(std::string(verb)) + R"(, "checkpoint": )" + json_text(path) +
         R"(, "said": )" + json_text(said) + (integrity ? R"(, "integrity": true)" : "") +
         R"(, "plan": )" + plan + "}";
}

Result<RepairRequest> request_from_json(std::string_view json, std::string_view verb,
                                        const std::string& source) {
  OrderedJson parsed = OrderedJson::parse(json, nullptr, false);
  RepairRequest request{text_of(parsed, "checkpoint"), text_of(parsed, "said"), {}};
  request.integrity = parsed.is_object() && parsed.contains("integrity");
  bool is_whole = parsed.is_object() && parsed.contains("plan") && !request.checkpoint.empty();
  if (!is_whole || text_of(parsed, "verb") != verb)
    return fail(ErrorKind::kDamaged, "does not say what was to be made, and how", {source});
  request.plan = parsed["plan"].dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return request;
}

std::string verb_of_request(std::string_view json) {
  return text_of(OrderedJson::parse(json, nullptr, false), "verb");
}

std::string as_said(const Store& store, const std::string& said, const std::string& resolved) {
  auto now = store.resolved(said);
  return !said.empty() && now && *now == resolved ? said : resolved;
}

}  // namespace shw
