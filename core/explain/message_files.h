// Reads a file of assets/messages: rows of the table of known messages (message_kinds.h), as data.
//
//   {"schema": "shardwright-messages/1", "about": "missing files", "order": 10,
//    "meanings": {"wrong-path": {...}},                 meanings that several rows name
//    "messages": [
//     {"id": "no-index", "loader": "verl", "example": "...", "patterns": ["..."],
//      "name": {"ends": [".index.json"]},               or a list of such tests; all must pass
//      "if": "not tensor-name",                         or a list (message_condition.h)
//      "numbers": {"version": [7, 8]},
//      "says_only_that_it_failed": true,
//      "meanings": ["wrong-path", {"id": "...", "rule": "missing-file", "wrong": "checkpoint",
//                   "weight": 0.6, "title": "...", "text": "...", "decide": "...",
//                   "command": "shardwright info CHECKPOINT",
//                   "speakers": "vLLM|SGLang"}]},         less likely if another program speaks
//     {"id": "save-refused", "example": "...",          words instead of patterns
//      "all": ["#saving", ["cannot", "refus"]], "none": ["#loading"], "meanings": [...],
//      "in_traceback": true}],                            words of a file and line, not of a
//      sentence
//   "words": {"saving": ["to save", "saving"]}}          lists that "#NAME" stands for; "|word" is
//                                                        not the end of a longer word
//
// A test of a name has "is", "begins", "ends" and "contains", lists of which one word must fit, and
// "not". "wrong" is "checkpoint", "request", "both" or "either" (if left out).
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/explain/message_kinds.h"

namespace shw {

// kUsage with the row and key that are wrong. `file`: for the error.
Result<MessageGroup> message_group_from_json(std::string_view text, const std::string& file);

}  // namespace shw
