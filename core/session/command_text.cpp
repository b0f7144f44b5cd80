// Every command has a text form: one line of a replay script, a bug report, or the command palette.
//
//   line    = word { " " argument }         a path or FQN is the rest of the line up to a keyword
//   in brackets below open PATH [" spec " PATH] [" against " PATH] | check [metadata|headers|data]
//   | mesh [AXIS=SIZE,...] | plan | repair [out PATH | in-place] | verify | undo | cancel select
//   FQN | tile [N] | finding N | filter [TEXT] | sort KEY [desc]
#include <array>
#include <charconv>

#include "core/session/session.h"

namespace shw {
namespace {

constexpr std::array<std::pair<SortKey, std::string_view>, 5> kSortKeys{
    {{SortKey::kRecorded, "recorded"},
     {SortKey::kName, "name"},
     {SortKey::kBytes, "bytes"},
     {SortKey::kChunks, "tiles"},
     {SortKey::kFindings, "findings"}}};

struct Writer {
  std::string operator()(const OpenCommand& c) const {
    return "open " + c.path + (c.spec.empty() ? "" : " spec " + c.spec) +
           (c.against.empty() ? "" : " against " + c.against);
  }
  std::string operator()(const CheckCommand& c) const {
    return c.depth ? "check " + std::string(name(*c.depth)) : "check";
  }
  std::string operator()(const MeshCommand& c) const {
    return c.text.empty() ? "mesh" : "mesh " + c.text;
  }
  std::string operator()(const PlanCommand& c) const {
    return c.fill.empty() ? "plan" : "plan fill " + c.fill;
  }
  std::string operator()(const RepairCommand& c) const {
    if (c.options.in_place) return "repair in-place";
    return c.options.out.empty() ? "repair" : "repair out " + c.options.out;
  }
  std::string operator()(const VerifyCommand&) const { return "verify"; }
  std::string operator()(const UndoCommand&) const { return "undo"; }
  std::string operator()(const CancelCommand&) const { return "cancel"; }
  std::string operator()(const SelectTensorCommand& c) const { return "select " + c.fqn; }
  std::string operator()(const SelectChunkCommand& c) const {
    return c.chunk ? "tile " + std::to_string(index_of(*c.chunk)) : "tile";
  }
  std::string operator()(const SelectFindingCommand& c) const {
    return "finding " + std::to_string(c.index);
  }
  std::string operator()(const FilterCommand& c) const {
    return c.text.empty() ? "filter" : "filter " + c.text;
  }
  std::string operator()(const SortCommand& c) const {
    std::string text = "sort";
    for (auto [key, word] : kSortKeys) {
      if (key == c.key) text += " " + std::string(word);
    }
    return text + (c.descending ? " desc" : "");
  }
};

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<Command> usage(std::string_view line, std::string expected) {
  return fail(ErrorKind::kUsage, "cannot read the command \"" + std::string(line) +
                                     "\": expected " + std::move(expected));
}

Result<Command> parse_open(std::string_view line, std::string_view rest) {
  if (rest.empty()) return usage(line, "open PATH [spec PATH] [against PATH]");
  OpenCommand open;
  if (std::size_t at = rest.rfind(" against "); at != std::string_view::npos) {
    open.against = rest.substr(at + 9);
    rest = rest.substr(0, at);
  }
  std::size_t spec = rest.find(" spec ");
  open.path = rest.substr(0, spec);
  if (spec != std::string_view::npos) open.spec = rest.substr(spec + 6);
  return open;
}

Result<Command> parse_check(std::string_view line, std::string_view rest) {
  if (rest.empty()) return CheckCommand{};
  for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
    if (rest == name(depth)) return CheckCommand{depth};
  }
  return usage(line, "check [metadata|headers|data]");
}

Result<Command> parse_repair(std::string_view line, std::string_view rest) {
  if (rest.empty()) return RepairCommand{};
  if (rest == "in-place") return RepairCommand{{"", true}};
  if (rest.starts_with("out ") && rest.size() > 4)
    return RepairCommand{{std::string(rest.substr(4)), false}};
  return usage(line, "repair [out PATH | in-place]");
}

Result<Command> parse_sort(std::string_view line, std::string_view rest) {
  SortCommand sort;
  if (rest.ends_with(" desc")) {
    sort.descending = true;
    rest.remove_suffix(5);
  }
  for (auto [key, word] : kSortKeys) {
    if (rest == word) {
      sort.key = key;
      return sort;
    }
  }
  return usage(line, "sort recorded|name|bytes|tiles|findings [desc]");
}

}  // namespace

std::string to_text(const Command& command) {
  return std::visit(Writer{}, command);
}

Result<Command> parse_command(std::string_view line) {
  std::size_t space = std::min(line.find(' '), line.size());
  std::string_view verb = line.substr(0, space);
  std::string_view rest = space < line.size() ? line.substr(space + 1) : std::string_view{};
  if (verb == "open") return parse_open(line, rest);
  if (verb == "check") return parse_check(line, rest);
  if (verb == "repair") return parse_repair(line, rest);
  if (verb == "plan" && rest.starts_with("fill ") && rest.size() > 5)
    return PlanCommand{std::string(rest.substr(5))};
  if (verb == "sort") return parse_sort(line, rest);
  if (verb == "mesh") return MeshCommand{std::string(rest)};
  if (verb == "filter") return FilterCommand{std::string(rest)};
  if (verb == "select" && !rest.empty()) return SelectTensorCommand{std::string(rest)};
  if (verb == "tile" && rest.empty()) return SelectChunkCommand{};
  if (auto value = number(rest)) {
    if (verb == "tile") return SelectChunkCommand{ChunkId{*value}};
    if (verb == "finding") return SelectFindingCommand{*value};
  }
  if (rest.empty()) {
    if (verb == "plan") return PlanCommand{};
    if (verb == "verify") return VerifyCommand{};
    if (verb == "undo") return UndoCommand{};
    if (verb == "cancel") return CancelCommand{};
  }
  return usage(line,
               "open, check, mesh, plan, repair, verify, undo, cancel, select, tile, finding, "
               "filter or sort");
}

}  // namespace shw
