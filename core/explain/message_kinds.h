// The table of known messages: how a loader words each one, and what it can mean. To add a message,
// add a row here and a row in its test.
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
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/explain/error_message.h"
#include "core/explain/hypothesis.h"

namespace shw {

// Short names for the tables below.
inline constexpr WrongSide kDisk = WrongSide::kCheckpoint, kLoader = WrongSide::kRequest;

// One possible cause of a message, as data.
struct Interpretation {
  std::string_view id = {};    // empty: the rule's id
  const Rule* rule = nullptr;  // may be null
  WrongSide wrong = WrongSide::kEither;
  double weight = 0;  // prior likelihood, at most 1
  std::string_view title = {}, text = {}, decide = {};
  // Options of `check`, or a whole command where NAME is replaced by the message's name; empty:
  // `check CHECKPOINT`.
  std::string_view command = {};
};

// Whether the message states what happened, or only that something failed; the latter are dropped
// beside the former.
enum class MessageCertainty : std::uint8_t { kWhat, kThatItFailed };

struct MessageKind {
  std::string_view id = {};       // stable; "form" in JSON
  std::string_view example = {};  // as users would recognise it
  std::array<std::string_view, 8> patterns = {};
  // Empty if shapes or names decide (hypotheses.h); otherwise in addition to them.
  std::array<Interpretation, 4> meanings = {};
  MessageCertainty certainty = MessageCertainty::kWhat;
  bool (*accepts)(const ErrorMessage&) = nullptr;  // null: every match of the patterns
  std::string_view loader = {};                    // if only one program prints it
};

// All rows: shapes and names, missing files, unreadable bytes, loaders'
// refusals.
std::vector<const MessageKind*> message_kinds();

// "….weight_scale", "….qzeros": a tensor that decodes a quantised weight.
bool is_scale_name(std::string_view name);

// Ids of rows without meanings: shapes and names decide.
inline constexpr std::string_view kShapes = "shapes";
inline constexpr std::string_view kMissingKeyForm = "missing-key";        // not in the checkpoint
inline constexpr std::string_view kUnexpectedKeyForm = "unexpected-key";  // not requested

// The parts of the table.
std::span<const MessageKind> name_messages();
std::span<const MessageKind> file_messages();
std::span<const MessageKind> byte_messages();
std::span<const MessageKind> format_messages();
std::span<const MessageKind> megatron_messages();
std::span<const MessageKind> loader_messages();
std::span<const MessageKind> sharded_messages();
std::span<const MessageKind> serving_messages();
std::span<const MessageKind> framework_messages();
std::span<const MessageKind> gguf_messages();
std::span<const MessageKind> engine_messages();
std::span<const MessageKind> diffusion_messages();
std::span<const MessageKind> hugging_face_messages();
std::span<const MessageKind> trainer_messages();
std::span<const MessageKind> tensor_messages();
std::span<const MessageKind> key_messages();
std::span<const MessageKind> download_messages();
std::span<const MessageKind> machine_messages();
std::span<const MessageKind> model_key_messages();
std::span<const MessageKind> setup_messages();

// The row whose example shares the most words with an unmatched text; nullptr if none is
// similar.
const MessageKind* nearest_kind(std::string_view text);

}  // namespace shw
