// The table of the messages that are understood: how a loader words each one, and what it can mean.
// A message more is a row more here and a row more in its test.
//
// A pattern is lower-case text in which a space stands for any white space, and
//   <saved> <current>  a shape: "torch.Size([64, 2])", "(64, 2)", "[64]"
//   <ggml_saved> <ggml_current>  a shape as llama.cpp prints it: "4096, 32000, 1, 1", innermost
//   first <numel>            a number of elements, for a saved shape of one dimension <name> a
//   name, in quotes or up to the next space; <before>: the word before <names>            a list of
//   names; each makes a message of its own <for>              "for NAME", "tensor for key NAME", or
//   nothing
//   <#key>             a number, kept under `key`
//   ~                  a few characters of anything, without numbers before a shape or a number
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/explain/error_message.h"
#include "core/explain/hypothesis.h"

namespace shw {

// In the words of the tables below.
inline constexpr WrongSide kDisk = WrongSide::kCheckpoint, kLoader = WrongSide::kRequest;

// One thing that a message can mean, as data.
struct Interpretation {
  std::string_view id = {};    // empty: the rule's
  const Rule* rule = nullptr;  // null: none looks for it
  WrongSide wrong = WrongSide::kEither;
  double weight = 0;  // of 1: how likely before anything else is known
  std::string_view title = {}, text = {}, decide = {};
  // Options of `check`, or a whole command, in which NAME is the message's; empty: `check
  // CHECKPOINT`.
  std::string_view command = {};
};

// Whose words say what happened: others are left out beside one that says more.
enum class MessageCertainty : std::uint8_t { kWhat, kThatItFailed };

struct MessageKind {
  std::string_view id = {};       // never changes: "form" of the JSON
  std::string_view example = {};  // as a person would recognise it
  std::array<std::string_view, 8> patterns = {};
  // Empty where shapes or names decide (hypotheses.h); else beside what they say.
  std::array<Interpretation, 4> meanings = {};
  MessageCertainty certainty = MessageCertainty::kWhat;
  bool (*accepts)(const ErrorMessage&) = nullptr;  // nothing: all that the patterns find
  std::string_view loader = {};                    // who says it, where only one program does
};

// Every row: shapes and names, files that are not there, bytes that cannot be read, and what
// loaders refuse.
std::vector<const MessageKind*> message_kinds();

// Rows of these ids have no meanings of their own: the shapes and the names decide.
inline constexpr std::string_view kShapes = "shapes";
inline constexpr std::string_view kMissingKeyForm = "missing-key";        // not in the checkpoint
inline constexpr std::string_view kUnexpectedKeyForm = "unexpected-key";  // not asked for

// Its parts.
std::span<const MessageKind> name_messages();
std::span<const MessageKind> file_messages();
std::span<const MessageKind> byte_messages();
std::span<const MessageKind> format_messages();
std::span<const MessageKind> megatron_messages();
std::span<const MessageKind> loader_messages();
std::span<const MessageKind> sharded_messages();
std::span<const MessageKind> serving_messages();
std::span<const MessageKind> hugging_face_messages();
std::span<const MessageKind> trainer_messages();
std::span<const MessageKind> tensor_messages();
std::span<const MessageKind> key_messages();

// The row whose example shares most words with a text that no pattern fits; nullptr where none is
// near.
const MessageKind* nearest_kind(std::string_view text);

}  // namespace shw
