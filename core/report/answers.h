// JSON answers of verbs without a report of their own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/rules/check.h"

namespace shw {

std::string demo_to_json(const std::string& checkpoint, const std::string& spec);
// Facts about a run that are added to every answer, except empty ones and keys that the answer has
// itself.
struct AnswerHeader {
  std::string path;    // of the checkpoint, as resolved
  std::string format;  // of the checkpoint
  double seconds = 0;  // since the program began
};
std::string with_answer_header(std::string json, const AnswerHeader& origin);
std::string written_to_json(const std::string& path, std::size_t size);  // {"file", "bytes"}
// {"rule", "title", "depth", "text", "drawing", "remedy", "link"}
std::string rule_to_json(const Rule& rule);
std::string rules_to_json();  // {"rules": [...]}, each as in rule_to_json()
std::string undone_to_json(const std::string& checkpoint);
std::string committed_to_json(const std::string& checkpoint);
std::string rolled_back_to_json(const std::vector<std::string>& folders);
// Names the opened checkpoint, which needs no repair: {"output", "repaired": false}
std::string nothing_repaired_to_json(const std::string& checkpoint);

}  // namespace shw
