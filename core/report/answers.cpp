#include "core/report/answers.h"

#include <fmt/core.h>

#include <cmath>

#include "core/base/version.h"
#include "core/report/json.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

Json answer() {
  return {{"schema", kJsonSchema}};
}

std::string text_of(const Json& json) {
  // Names from files may be invalid UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

void describe(const Rule& rule, Json& json) {
  json["rule"] = rule.id;
  json["title"] = rule.title;
  json["depth"] = name(rule.depth);
  json["text"] = rule.teaches;
  json["drawing"] = rule.lesson.drawing;
  json["remedy"] = rule.lesson.remedy;
  json["link"] = rule.lesson.link.empty() ? Json() : Json(rule.lesson.link);
}

}  // namespace

std::string demo_to_json(const std::string& checkpoint, const std::string& spec) {
  Json json = answer();
  json["checkpoint"] = checkpoint;
  json["spec"] = spec;
  return text_of(json);
}

std::string with_answer_header(std::string json, const AnswerHeader& origin) {
  Json more = Json::object();
  auto add = [&](const char* key, Json value) {
    // Keys at the top level of the answer are indented by two spaces.
    if (json.find(fmt::format("\n  \"{}\":", key)) == json.npos) more[key] = std::move(value);
  };
  if (!origin.path.empty()) add("path", origin.path);
  add("tool", {{"version", kProgramVersion}, {"commit", kProgramCommit}});
  if (!origin.format.empty()) add("format", origin.format);
  add("seconds", std::round(origin.seconds * 1000) / 1000);
  const std::size_t end = json.rfind('}');
  if (end == json.npos || more.empty()) return json;
  json.erase(json.find_last_not_of(" \n", end - 1) + 1);
  const std::string members = text_of(more);
  return json + "," + members.substr(members.find('{') + 1);
}

std::string written_to_json(const std::string& path, std::size_t size) {
  Json json = answer();
  json["file"] = path;
  json["bytes"] = size;
  return text_of(json);
}

std::string rule_to_json(const Rule& rule) {
  Json json = answer();
  describe(rule, json);
  return text_of(json);
}

std::string rules_to_json() {
  Json json = answer();
  json["rules"] = Json::array();
  for (const Rule& rule : all_rules()) {
    Json entry;
    describe(rule, entry);
    json["rules"].push_back(std::move(entry));
  }
  return text_of(json);
}

std::string undone_to_json(const std::string& checkpoint) {
  Json json = answer();
  json["output"] = checkpoint;
  json["undone"] = true;
  return text_of(json);
}

std::string committed_to_json(const std::string& checkpoint) {
  Json json = answer();
  json["output"] = checkpoint;
  json["committed"] = true;
  return text_of(json);
}

std::string rolled_back_to_json(const std::vector<std::string>& folders) {
  Json json = answer();
  json["rolled_back"] = folders;
  return text_of(json);
}

std::string nothing_repaired_to_json(const std::string& checkpoint) {
  Json json = answer();
  json["output"] = checkpoint;
  json["repaired"] = false;
  return text_of(json);
}

}  // namespace shw
