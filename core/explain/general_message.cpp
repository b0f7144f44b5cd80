#include "core/explain/general_message.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "core/base/checked.h"
#include "core/explain/general_kinds.h"
#include "core/explain/general_lacking.h"
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::size_t kMaxRead = 4096;     // the end, where a traceback has its error
constexpr std::size_t kShapeContext = 64;  // characters before a shape that tell its side
constexpr std::size_t kLongestWord = 256;  // of a name
constexpr std::size_t kMaxOfAssertion = 600;

using WordList = std::span<const std::string_view>;

constexpr std::string_view kFileWords[] = {"saved",   "stored",      "checkpoint", "ckpt",
                                           "in file", "got",         "loaded",     "source",
                                           "disk",    "found",       "received",   "provided",
                                           "actual",  "load weight", "weights of", "weight of"};
constexpr std::string_view kLoaderWords[] = {"expect",  "model ",   "the model", "model's",
                                             "current", "target",   "param",     "module",
                                             "request", "required", "config",    "wants"};
constexpr std::string_view kMissingWords[] = {
    "missing", "not found", "cannot find",  "could not find", "unable to find",   "not present",
    "absent",  "lacks",     "not exist in", "missing from",   "missing examples", "omitted"};
constexpr std::string_view kExtraWords[] = {"unexpected",
                                            "unused",
                                            "not used",
                                            "extra ",
                                            "unknown",
                                            "no matching",
                                            "matching param",
                                            "unmatched",
                                            "not in the model",
                                            "absent from the",
                                            "not found in the model",
                                            "not in model",
                                            "contains none of"};
constexpr std::string_view kAgainst[] = {
    " but ",     "mismatch",   "!=",        " vs ",        "not match",       " into ",
    "different", "instead of", "divisible", "and current", "and the current", "this run"};
constexpr std::string_view kWorldWords[] = {"world size",
                                            "world_size",
                                            " ranks",
                                            " shards",
                                            "tensor_model_parallel",
                                            "tensor parallel",
                                            "tp_size",
                                            "pipeline_model_parallel",
                                            "pipeline parallel",
                                            " gpus",
                                            " devices",
                                            "dp size",
                                            "ep_size"};
constexpr std::string_view kPlaceWords[] = {"no checkpoint", "checkpoint",  "step path",
                                            "weights",       "global_step", "iter_"};
constexpr std::string_view kShapeWords[] = {"shape", "size", "dimension"};
constexpr std::string_view kNotFoundPhrases[] = {
    "not found",   "does not exist",          "could not find", "couldn't find", "can't find",
    "cannot read", "expected sub-checkpoint", "cannot find",    "no such",       "no checkpoint",
    "no step"};

// Position of the first of the words.
std::size_t find_first_word(std::string_view text, WordList words) {
  std::size_t first = text.npos;
  for (std::string_view word : words) first = std::min(first, text.find(word));
  return first;
}
// Position after the last of the words; 0 if none.
std::size_t find_after_last_word(std::string_view text, WordList words) {
  std::size_t last = 0;
  for (std::string_view word : words) {
    if (std::size_t at = text.rfind(word); at != text.npos) last = std::max(last, at + 1);
  }
  return last;
}

struct GeneralShape {
  Extents extents;
  std::size_t begin = 0, end = 0;
};

// Matches "[64, 2]" and "(64,)": digits, commas and blanks in brackets.
std::optional<GeneralShape> parse_shape_at(std::string_view text, std::size_t begin) {
  const char closer = text[begin] == '(' ? ')' : ']';
  GeneralShape shape{{}, begin, begin};
  std::int64_t number = -1;
  for (std::size_t at = begin + 1; at < text.size(); ++at) {
    const char c = text[at];
    if (is_digit(c)) {
      auto tenfold = checked_mul<std::int64_t>(std::max<std::int64_t>(number, 0), 10);
      if (!tenfold) return std::nullopt;
      auto next = checked_add<std::int64_t>(*tenfold, c - '0');
      if (!next) return std::nullopt;
      number = *next;
    } else if (c == ',' || c == closer) {
      if (number >= 0 && shape.extents.size() < kMaxDims) shape.extents.push_back(number);
      number = -1;
      shape.end = at + 1;
      if (c == closer) return shape.extents.empty() ? std::nullopt : std::optional(shape);
    } else if (c != ' ' && c != '\n') {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::vector<GeneralShape> shapes_in(std::string_view text) {
  std::vector<GeneralShape> shapes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '(' && text[at] != '[') continue;
    auto shape = parse_shape_at(text, at);
    if (!shape) continue;
    at = shape->end;
    shapes.push_back(std::move(*shape));
  }
  return shapes;
}

enum class Side : std::uint8_t { kUnknown, kFile, kLoader };

// The side that a shape belongs to: by the following words ("(4, 8) in the checkpoint"), otherwise
// by the last word before it that names a side.
Side side_of(std::string_view text, const GeneralShape& shape, std::size_t from) {
  std::string_view after = text.substr(std::min(text.size(), shape.end), 18);
  for (std::string_view lead : {" in the ", " in ", " from the ", " from "}) {
    if (!after.starts_with(lead)) continue;
    if (find_first_word(after, kFileWords) != after.npos) return Side::kFile;
    if (find_first_word(after, kLoaderWords) != after.npos) return Side::kLoader;
  }
  const std::size_t begin =
      std::max(from, shape.begin > kShapeContext ? shape.begin - kShapeContext : 0);
  const std::string_view before = text.substr(begin, shape.begin - begin);
  const std::size_t file = find_after_last_word(before, kFileWords);
  const std::size_t loader = find_after_last_word(before, kLoaderWords);
  if (file == loader) return Side::kUnknown;
  return file > loader ? Side::kFile : Side::kLoader;
}

bool is_name_part(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.' ||
         c == '-';
}

// "megatron.core.dist_checkpointing.core.CheckpointingException", "engine.py"
bool is_code(std::string_view word) {
  for (std::string_view end : {"Error", "Exception", "Warning", ".py", ".safetensors", ".json",
                               ".bin", ".pt", ".distcp"}) {
    if (word.ends_with(end)) return true;
  }
  return word.starts_with("torch.") || word.starts_with("transformers.");
}

struct NameInMessage {
  std::string name;
  std::size_t begin = 0;
};

// Words like "model.layers.0.mlp.weight": two dots, or a typical tensor suffix.
std::vector<NameInMessage> names_in(std::string_view text) {
  std::vector<NameInMessage> names;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_name_part(text[end])) ++end;
    std::string_view word = text.substr(at, end - at);
    while (!word.empty() && (word.back() == '.' || word.back() == '-')) word.remove_suffix(1);
    const bool ends_so = word.ends_with(".weight") || word.ends_with(".bias") ||
                         word.ends_with("_proj") || word.ends_with(".kernel") ||
                         word.ends_with(".inv_freq");
    const bool has_path = std::count(word.begin(), word.end(), '.') >= 2 && !is_digit(word[0]);
    const bool is_object = at > 0 && text[at - 1] == '<';  // "<a.b.Handler object at 0x7f>"
    // "dist.c10d.send(state)" in a traceback's line of code.
    const bool is_call = end + 1 < text.size() && text[end] == '(' && !is_digit(text[end + 1]);
    // "https://docs.a.io/b": a part of an address or of a path.
    const bool is_in_path =
        (at > 0 && text[at - 1] == '/') || (end < text.size() && text[end] == '/');
    if (word.size() <= kLongestWord && !is_code(word) && !is_object &&
        (ends_so || (has_path && !is_in_path && !is_call)))
      names.push_back({std::string(word), at});
    at = std::max(end, at) + 1;
  }
  return names;
}

std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at < text.size() && numbers.size() < 8;) {
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    const bool is_word = at > 0 && is_name_part(text[at - 1]);
    if (end > at && end - at <= 9 && !is_word)
      numbers.push_back(std::stoll(std::string(text.substr(at, end - at))));
    at = std::max(end, at) + 1;
  }
  return numbers;
}

constexpr MessageKind kGeneralShapes = {.id = kShapes, .example = "two shapes that differ"};
constexpr MessageKind kGeneralMissing = {.id = kMissingKeyForm, .example = "names not found"};
constexpr MessageKind kGeneralExtra = {.id = kUnexpectedKeyForm, .example = "names not asked for"};
constexpr MessageKind kGeneralTwoShapes = {
    .id = "two-shapes",
    .example = "two shapes, without saying whose they are",
    .meanings = {{{.id = "other-model",
                   .rule = &kShapeMismatch,
                   .weight = 0.4,
                   .title = "two tensors that belong together have incompatible shapes",
                   .text = "The message does not say which shape is the file's. A scale next to "
                           "its weight has the weight's shape divided by the block or group size; "
                           "a shape that divides the other evenly is one rank's shard.",
                   .decide = "Check the shapes that the checkpoint records.",
                   .command = "shardwright ls CHECKPOINT NAME"}}}};
constexpr MessageKind kGeneralExperts = {
    .id = "expert-count",
    .example = "two numbers of experts",
    .meanings = {
        {{.id = "expert-layout",
          .rule = &kConfigCount,
          .wrong = kDisk,
          .weight = 0.6,
          .title = "the number of experts differs from the model's",
          .text = "An export under expert parallelism wrote one rank's experts, or numbered each "
                  "rank's from 0; or config.json belongs to another model. The router has one row "
                  "per expert.",
          .decide = "Compare the number of experts in the checkpoint with the router's rows.",
          .command = "shardwright check CHECKPOINT"}}}};
constexpr MessageKind kGeneralWorld = {
    .id = "other-world",
    .example = "two numbers of ranks",
    .meanings = {
        {{.id = "other-world-size",
          .rule = &kTopologyLocked,
          .wrong = kLoader,
          .weight = 0.6,
          .title = "the number of ranks or shards differs from the save's",
          .text = "This loader needs the parallel sizes of the save. Nothing is damaged: load with "
                  "those sizes, or reshard with `shardwright reshard` if the format allows it.",
          .decide = "Compare the parallel sizes of both runs.",
          .command = "shardwright info CHECKPOINT"}}}};
constexpr MessageKind kGeneralPlace = {
    .id = "no-checkpoint-here",
    .example = "a checkpoint that is not found",
    .meanings = {
        {{.id = "wrong-path",
          .wrong = kLoader,
          .weight = 0.5,
          .title = "the path is not the checkpoint's folder",
          .text = "Loaders need the folder of one existing step, not the run's parent folder or a "
                  "component's subfolder.",
          .decide = "Check what is in the folder.",
          .command = "shardwright info CHECKPOINT"},
         {.id = "unfinished-save",
          .rule = &kLeftoverMetadata,
          .wrong = kDisk,
          .weight = 0.35,
          .title = "the save did not finish",
          .text = "Files that mark a step as complete are written last. Use the previous step.",
          .decide = "Check whether an earlier step opens.",
          .command = "shardwright check CHECKPOINT"}}}};

// "assert a == b" above a bare "AssertionError": the only words of the error. Empty if there is
// none.
std::string_view assertion_of_bare_error(std::string_view text) {
  constexpr std::string_view kError = "assertionerror", kAssert = "assert ";
  const std::size_t error = text.rfind(kError);
  if (error == text.npos) return {};
  const std::string_view after = text.substr(error + kError.size());
  if (!after.empty() && after[0] != '\n') return {};
  const std::size_t begin = text.substr(0, error).rfind(kAssert);
  if (begin == text.npos || error - begin > kMaxOfAssertion) return {};
  return text.substr(begin, text.substr(begin).find('\n'));
}

// Where the class of an error begins: "filenotfounderror: ". "valueerror" has a word of its own
// that says nothing, so its sentence begins after "value".
std::size_t error_begin(std::string_view text, std::size_t at) {
  std::size_t begin = at;
  while (begin > 0 && text[begin - 1] >= 'a' && text[begin - 1] <= 'z') --begin;
  return text.substr(begin).starts_with("valueerror") ? at : begin;
}

// Position of the last `word` that begins a sentence, with its class: not the "error: " of "last
// error: ".
std::size_t last_error_word(std::string_view text, std::string_view word) {
  for (std::size_t end = text.size(); end != 0;) {
    const std::size_t at = text.substr(0, end).rfind(word);
    if (at == text.npos) break;
    const bool is_word_alone = at >= 2 && text[at - 1] == ' ';
    if (!is_word_alone || !is_name_part(text[at - 2])) return error_begin(text, at);
    end = at;
  }
  return text.npos;
}

// The sentences of errors, the last first: each text from an "...Error:" on. Without one, from the
// last warning, otherwise the last lines: earlier words of a log mean nothing.
std::vector<std::string_view> error_sentences(std::string_view text) {
  constexpr std::size_t kLongestSentence = 600, kMaxSentences = 6;
  if (const std::string_view assertion = assertion_of_bare_error(text); !assertion.empty())
    return {assertion};
  std::vector<std::string_view> sentences;
  for (std::size_t end = text.size(); end != 0 && sentences.size() < kMaxSentences;) {
    std::size_t begin = text.npos;
    for (std::string_view word : {"error: ", "exception: "}) {
      const std::size_t at = last_error_word(text.substr(0, end), word);
      if (at != text.npos) begin = begin == text.npos ? at : std::max(begin, at);
    }
    if (begin == text.npos) break;
    sentences.push_back(text.substr(begin, kLongestSentence));
    end = begin;
  }
  if (!sentences.empty()) return sentences;
  const std::size_t warning = text.rfind("warning: ");
  if (warning != text.npos) return {text.substr(warning, kLongestSentence)};
  const bool is_long = text.size() > kLongestSentence;
  return {text.substr(is_long ? text.size() - kLongestSentence / 2 : 0)};
}

std::string first_name(std::string_view text) {
  const auto names = names_in(text);
  // A logger's name ("fvcore.common.checkpoint") comes before that of a tensor.
  const auto tensor = std::find_if(names.begin(), names.end(), [](const NameInMessage& one) {
    return one.name.ends_with(".weight") || one.name.ends_with(".bias");
  });
  if (tensor != names.end()) return tensor->name;
  return names.empty() ? std::string() : names.front().name;
}

// If the side (file or loader) of only one shape is known, the other shape is from the other side.
void complete(Side& one, Side& two) {
  auto other = [](Side side) { return side == Side::kFile ? Side::kLoader : Side::kFile; };
  if (one == Side::kUnknown) {
    one = other(two);
  } else if (two == Side::kUnknown) {
    two = other(one);
  }
}

std::optional<ErrorMessage> general_shapes(const PastedText& pasted) {
  auto shapes = shapes_in(pasted.lower);
  // Without words about shapes, "(8)" or "[0, 1]" may be anything.
  const bool speaks_of_shapes =
      find_first_word(pasted.lower, kShapeWords) != std::string::npos && !shapes.empty();
  // A weight and its scale have two shapes that differ by design; groups are lists of counts.
  const bool speaks_of_groups = pasted.lower.find("parameter group") != std::string::npos;
  const bool speaks_of_scale =
      error_sentences(pasted.lower).front().find("scale") != std::string::npos;
  if (!speaks_of_shapes || speaks_of_scale || speaks_of_groups) return std::nullopt;
  for (std::size_t i = 0; i + 1 < shapes.size(); ++i) {
    Side one = side_of(pasted.lower, shapes[i], i == 0 ? 0 : shapes[i - 1].end);
    Side two = side_of(pasted.lower, shapes[i + 1], shapes[i].end);
    const bool names_file = find_first_word(pasted.lower, kFileWords) != std::string::npos ||
                            pasted.lower.find("but expected") != std::string::npos;
    if (shapes.size() == 2 && one != two && names_file) complete(one, two);
    if (one == two || one == Side::kUnknown || two == Side::kUnknown) continue;
    const bool file_first = one == Side::kFile;
    return ErrorMessage{&kGeneralShapes, first_name(pasted.text),
                        shapes[file_first ? i : i + 1].extents,
                        shapes[file_first ? i + 1 : i].extents};
  }
  const bool is_against = find_first_word(pasted.lower, kAgainst) != std::string::npos;
  if (shapes.size() != 2 || !is_against || pasted.lower.find("shape") == std::string::npos)
    return std::nullopt;
  return ErrorMessage{&kGeneralTwoShapes, first_name(pasted.text), shapes[0].extents,
                      shapes[1].extents};
}

// Position of the first word that says that a name was not asked for.
std::size_t find_unexpected_word(std::string_view text) {
  const std::size_t extra = find_first_word(text, kExtraWords);
  if (extra == text.npos) return extra;
  for (std::string_view other : {"unexpected missing", "unexpected dtype", "unexpected shape"}) {
    if (text.substr(extra).starts_with(other)) return text.npos;
  }
  return extra;
}

std::vector<ErrorMessage> find_missing_name_messages(const PastedText& pasted, std::size_t most) {
  std::vector<ErrorMessage> messages;
  const std::size_t missing = find_first_word(pasted.lower, kMissingWords);
  const std::size_t extra = find_unexpected_word(pasted.lower);
  if (missing == std::string::npos && extra == std::string::npos) return messages;
  const MessageKind* kind = &kGeneralExtra;
  if (missing < extra) {
    const MessageKind* told = kind_of_missing_names(error_sentences(pasted.lower).front());
    kind = told != nullptr ? told : &kGeneralMissing;
  }
  for (NameInMessage& name : names_in(pasted.text)) {
    if (messages.size() == most) break;
    messages.push_back({kind, std::move(name.name), {}, {}});
  }
  return messages;
}

std::optional<ErrorMessage> find_rank_count_message(const PastedText& pasted) {
  const std::string& text = pasted.lower;
  if (text.find("collective") != text.npos) return std::nullopt;  // numbers of calls, not of ranks
  auto numbers = numbers_in(text);
  if (numbers.size() < 2 || numbers[0] == numbers[1]) return std::nullopt;
  if (find_first_word(text, kAgainst) == text.npos) return std::nullopt;
  const bool experts = text.find("expert") != text.npos;
  if (!experts && find_first_word(text, kWorldWords) == text.npos) return std::nullopt;
  ErrorMessage message{experts ? &kGeneralExperts : &kGeneralWorld, {}, {}, {}};
  message.numbers = {{"first", numbers[0]}, {"second", numbers[1]}};
  return message;
}

bool is_missing_place(std::string_view sentence) {
  return find_first_word(sentence, kNotFoundPhrases) != sentence.npos &&
         find_first_word(sentence, kPlaceWords) != sentence.npos;
}

// The kind of the last sentence that is of a certain one; otherwise of the last that is of any.
const MessageKind* most_certain_kind(const std::vector<std::string_view>& sentences) {
  const MessageKind* vague = nullptr;
  for (std::string_view sentence : sentences) {
    const MessageKind* kind = match_general_kind(sentence);
    if (kind != nullptr && kind->certainty == MessageCertainty::kSaysWhatFailed) return kind;
    if (vague == nullptr) vague = kind;
  }
  return vague;
}

// The kind of a vague sentence: "not found" about a path if it says so, otherwise the kind of its
// place in the traceback, otherwise its own.
const MessageKind* kind_of_general_sentence(std::string_view text, std::string_view sentence,
                                            const MessageKind* words) {
  if (is_missing_place(sentence)) return &kGeneralPlace;
  const MessageKind* place = traceback_kind(text);
  return place != nullptr ? place : words;
}

}  // namespace

std::string_view last_error_sentence(const PastedText& pasted) {
  const std::string_view sentence = error_sentences(pasted.lower).front();
  return std::string_view(pasted.text)
      .substr(static_cast<std::size_t>(sentence.data() - pasted.lower.data()), sentence.size());
}

std::vector<ErrorMessage> read_general(const PastedText& pasted, std::size_t most) {
  PastedText end = pasted;
  if (end.text.size() > kMaxRead) {
    end.text.erase(0, end.text.size() - kMaxRead);
    end.lower.erase(0, end.lower.size() - kMaxRead);
  }
  if (auto shapes = general_shapes(end)) return {*shapes};
  if (auto names = find_missing_name_messages(end, most); !names.empty()) return names;
  if (auto counts = find_rank_count_message(end)) return {*counts};
  if (auto file = missing_file_in(last_error_sentence(end))) return {*file};
  const std::vector<std::string_view> sentences = error_sentences(end.lower);
  const MessageKind* kind = most_certain_kind(sentences);
  if (kind == nullptr || kind->certainty == MessageCertainty::kOnlyFailure)
    kind = kind_of_general_sentence(end.lower, sentences.front(), kind);
  if (kind == nullptr) return {};
  return {ErrorMessage{kind, first_name(end.text), {}, {}}};
}

}  // namespace shw
