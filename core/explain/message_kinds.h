// The table of known messages: how a loader words each one, and what it can mean. Its rows are data
// (assets/messages, message_files.h). To add a message, add a row there and a row in its test.
//
// A pattern is lower-case text in which a space stands for any white space, and
//   <saved> <current>            a shape: "torch.Size([64, 2])", "(64, 2)", "[64]"
//   <ggml_saved> <ggml_current>  a shape as llama.cpp prints it: "4096, 32000", innermost dim first
//   <numel>                      a number of elements, for a saved shape of one dimension
//   <name>                       a name, in quotes or up to the next space
//   <before>                     the word before the pattern
//   <names>                      a list of names; each makes a message of its own
//   <for>                        "for NAME", "tensor for key NAME", or nothing
//   <#key>                       a number, kept under `key`
//   ~                            a few characters of anything, without numbers before a shape or
//                                a number
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/explain/error_message.h"
#include "core/explain/hypothesis.h"

namespace shw {

struct MessageCondition;  // message_condition.h

// A row without patterns is about each sentence that has a word of every group of `all`, and none
// of `none`. It is asked only where no pattern matches; rows of tracebacks only where no row of
// sentences fits either.
struct MessageWords {
  std::vector<std::vector<std::string_view>> all = {};
  std::vector<std::string_view> none = {};
  bool matches_in_traceback = false;  // of a file and its line in a traceback, not of the sentence
};

// Short names for tables.
inline constexpr FaultSide kDisk = FaultSide::kCheckpoint, kLoader = FaultSide::kRequest;

// One possible cause of a message, as data.
struct Interpretation {
  std::string_view id = {};    // empty: the rule's id
  const Rule* rule = nullptr;  // may be null
  FaultSide wrong = FaultSide::kEither;
  double weight = 0;  // prior likelihood, at most 1
  std::string_view title = {}, text = {}, decide = {};
  // Options of `check`, or a whole command where NAME is replaced by the message's name; empty:
  // `check CHECKPOINT`.
  std::string_view command = {};
  // Programs of which this is true ("vLLM|SGLang"), where others print the message too.
  std::string_view speakers = {};
};

// kSaysWhatFailed: the message says what happened. kOnlyFailure: it says only that something
// failed; it is dropped if a kSaysWhatFailed message is present.
enum class MessageCertainty : std::uint8_t { kSaysWhatFailed, kOnlyFailure };

struct MessageKind {
  std::string_view id = {};       // stable; "form" in JSON
  std::string_view example = {};  // as users would recognise it
  std::array<std::string_view, 8> patterns = {};
  // Empty if shapes or names decide (hypotheses.h); otherwise in addition to them.
  std::array<Interpretation, 4> meanings = {};
  MessageCertainty certainty = MessageCertainty::kSaysWhatFailed;
  const MessageCondition* condition = nullptr;  // null: every match of the patterns
  const MessageWords* words = nullptr;          // null: patterns decide
  std::string_view loader = {};                 // if only one program prints it
  bool traceback_says_more = false;  // Python's own words: the place that raised them decides
};

// A file of assets/messages.
struct MessageGroup {
  std::string_view about = {};
  std::int64_t order = 0;  // groups are tried in this order: the first matching pattern wins
  std::vector<MessageKind> kinds = {};
  std::shared_ptr<const void> texts = {};  // what the rows' texts and conditions are in
};

// The groups of this program, by their order.
const std::vector<MessageGroup>& message_groups();
// All rows of all groups.
std::vector<const MessageKind*> message_kinds();

// Ids of rows without meanings: shapes and names decide.
inline constexpr std::string_view kShapes = "shapes";
inline constexpr std::string_view kMissingKeyForm = "missing-key";        // not in the checkpoint
inline constexpr std::string_view kUnexpectedKeyForm = "unexpected-key";  // not requested

// The row whose example shares the most words with an unmatched text; nullptr if none is
// similar.
const MessageKind* nearest_kind(std::string_view text);

}  // namespace shw
