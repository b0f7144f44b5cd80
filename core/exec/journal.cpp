#include "core/exec/journal.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/checked.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/base/version.h"
#include "core/io/read_whole.h"

namespace shw {
namespace {

using Json = nlohmann::json;

constexpr const char* kNextJournalFile = ".shardwright-journal-next";
// Version 1 stored the CRC-32 of chunks instead of checksums of their sources; 2 and 3 lack the
// out-of-range counts. Runs with these versions cannot be resumed.
constexpr int kJournalVersion = 4;
constexpr std::size_t kHashDigits = 32;
constexpr int kMostDepth = 8;

// ---- writing

std::string hash_of_text(std::string_view text) {
  return to_hex(hash_of(std::as_bytes(std::span(text))));
}

std::string line_of(const Json& json) {
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return hash_of_text(text) + " " + text + "\n";
}

// Escapes JSON text in pieces that end before an ASCII character, so that no UTF-8 sequence is
// split. A request for millions of chunks has hundreds of megabytes, and every JSON tree would copy
// it.
void append_json_escaped(std::string_view text, std::string& out) {
  constexpr std::size_t kPiece = 64 << 10;
  while (!text.empty()) {
    std::size_t length = std::min(kPiece, text.size());
    while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0x80) != 0) ++length;
    const std::string piece =
        Json(text.substr(0, length)).dump(-1, ' ', true, Json::error_handler_t::replace);
    out.append(piece, 1, piece.size() - 2);
    text.remove_prefix(length);
  }
}

std::string line_of(const JournalHeader& header) {
  Json json = {{"journal", kJournalVersion},
               {"out", escape_name(header.out)},
               {"program", header.program},
               {"laid_out", header.laid_out},
               {"inputs", Json::array()}};
  for (const JournalInput& input : header.inputs) {
    Json files = Json::array();
    for (const Entry& file : input.files)
      files.push_back({{"path", escape_name(file.path)},
                       {"size", file.size},
                       {"modified", file.modified_ns},
                       {"changed", file.changed_ns}});
    json["inputs"].push_back({{"folder", escape_name(input.folder)}, {"files", std::move(files)}});
  }
  const std::string others = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string line;
  line.reserve(others.size() + header.request.size() / 3 * 4 + 256);
  line.append(kHashDigits, '0');
  line += ' ';
  line.append(others, 0, others.size() - 1);
  line += R"(,"request":")";
  append_json_escaped(header.request, line);
  line += fmt::format(R"(","schema":"{}"}})", kJsonSchema);
  line.replace(0, kHashDigits, hash_of_text(std::string_view(line).substr(kHashDigits + 1)));
  line += '\n';
  return line;
}

std::string line_of(const DurableFile& file) {
  // One string for all chunks: a JSON tree would have a node per chunk.
  std::string elements;
  elements.reserve(kHashDigits * file.elements.size());
  Json out_of_range = Json::array();
  for (std::size_t i = 0; i < file.elements.size(); ++i) {
    elements += to_hex(file.elements[i].fingerprint);
    if (file.elements[i].out_of_range != 0)
      out_of_range.push_back({i, file.elements[i].out_of_range});
  }
  Json json = {
      {"path", escape_name(file.path)}, {"size", file.size}, {"elements", std::move(elements)}};
  if (!out_of_range.empty()) json["out_of_range"] = std::move(out_of_range);
  return line_of(json);
}

// ---- reading

tl::unexpected<Error> damaged(std::size_t line, const std::string& what) {
  return fail(ErrorKind::kDamaged,
              "line " + std::to_string(line) + " of the journal is not what was written: " + what,
              {kJournalFile}, "remove it with `resume --roll-back`, and start from scratch");
}

bool read(const Json* json, std::string& out) {
  if (json == nullptr || !json->is_string()) return false;
  out = json->get<std::string>();
  return true;
}

// Reads a file name that may be escaped because it is not UTF-8.
bool read_name(const Json* json, std::string& out) {
  if (!read(json, out)) return false;
  out = unescape_name(out);
  return true;
}

template <std::integral T>
bool read(const Json* json, T& out) {
  if (json == nullptr || !json->is_number_integer()) return false;
  auto number = json->is_number_unsigned() ? narrow<T>(json->get<std::uint64_t>())
                                           : narrow<T>(json->get<std::int64_t>());
  out = number.value_or(T{});
  return number.has_value();
}

bool read(const Json& json, Entry& file) {
  file.kind = EntryKind::kFile;
  return read_name(find_member(json, "path"), file.path) &&
         read(find_member(json, "size"), file.size) &&
         read(find_member(json, "modified"), file.modified_ns) &&
         read(find_member(json, "changed"), file.changed_ns) && is_safe_relative_path(file.path);
}

bool read_elements(const Json* json, std::vector<ElementSums>& elements) {
  std::string text;
  if (!read(json, text) || text.size() % kHashDigits != 0) return false;
  elements.reserve(text.size() / kHashDigits);
  for (std::size_t at = 0; at < text.size(); at += kHashDigits) {
    auto fingerprint = fingerprint_of_hex(text.substr(at, kHashDigits));
    if (!fingerprint) return false;
    elements.push_back({*fingerprint});
  }
  return true;
}

// Pairs [chunk, number of elements] for chunks that have out-of-range elements.
bool read_out_of_range(const Json* json, std::vector<ElementSums>& elements) {
  if (json == nullptr) return true;
  if (!json->is_array()) return false;
  for (const Json& one : *json) {
    std::size_t tile = 0;
    if (!one.is_array() || one.size() != 2 || !read(&one[0], tile) || tile >= elements.size() ||
        !read(&one[1], elements[tile].out_of_range))
      return false;
  }
  return true;
}

bool read(const Json& json, DurableFile& file) {
  if (!read_elements(find_member(json, "elements"), file.elements) ||
      !read_out_of_range(find_member(json, "out_of_range"), file.elements))
    return false;
  return read_name(find_member(json, "path"), file.path) &&
         read(find_member(json, "size"), file.size) && is_safe_relative_path(file.path);
}

bool read(const Json& json, JournalInput& input) {
  const Json* files = find_member(json, "files");
  if (files == nullptr || !files->is_array() ||
      !read_name(find_member(json, "folder"), input.folder))
    return false;
  for (const Json& file : *files) {
    if (!read(file, input.files.emplace_back())) return false;
  }
  return true;
}

bool read(const Json& json, JournalHeader& header) {
  const Json* inputs = find_member(json, "inputs");
  if (inputs == nullptr || !inputs->is_array()) return false;
  for (const Json& input : *inputs) {
    if (!read(input, header.inputs.emplace_back())) return false;
  }
  return read_name(find_member(json, "out"), header.out) &&
         read(find_member(json, "request"), header.request) &&
         read(find_member(json, "program"), header.program) &&
         read(find_member(json, "laid_out"), header.laid_out);
}

// The JSON of a line; nullopt if the hash does not match.
std::optional<Json> json_of(std::string_view line) {
  if (line.size() <= kHashDigits || line[kHashDigits] != ' ') return std::nullopt;
  std::string_view text = line.substr(kHashDigits + 1);
  if (hash_of_text(text) != line.substr(0, kHashDigits)) return std::nullopt;
  auto keeps = [](int depth, Json::parse_event_t, const Json&) { return depth < kMostDepth; };
  Json json = parse_json<Json>(text, keeps).tree;
  return json.is_object() ? std::optional(std::move(json)) : std::nullopt;
}

Status read_header(const Json& json, JournalHeader& header) {
  int version = 0;
  if (!read(find_member(json, "journal"), version) || version != kJournalVersion)
    return fail(
        ErrorKind::kUnsupported, "is a journal of another version", {kJournalFile},
        "resume it with the version that started it, or remove it with `resume --roll-back`");
  return read(json, header) ? Status{} : damaged(1, "a key is missing or of another type");
}

}  // namespace

Result<JournalText> read_journal(const Directory& folder) {
  SHW_TRY(auto source, folder.open(kJournalFile));
  SHW_TRY(Bytes bytes, read_whole(*source));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  JournalText journal;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    auto json = end == std::string_view::npos ? std::nullopt : json_of(line);
    if (!json) {
      // After a crash, a line that was written but not synced may be cut off or consist of zeros.
      bool is_torn = number > 1 && (text.empty() || line.find('\0') != line.npos);
      if (is_torn) break;
      return damaged(number, "it was changed");
    }
    if (number == 1) {
      SHW_CHECK(read_header(*json, journal.header));
    } else if (!read(*json, journal.files.emplace_back())) {
      return damaged(number, "it names no file");
    }
  }
  if (journal.header.program.empty()) return damaged(1, "it is missing");
  return journal;
}

Result<std::unique_ptr<Journal>> Journal::begin(WritableDirectory& folder,
                                                const JournalText& text) {
  std::string lines = line_of(text.header);
  for (const DurableFile& file : text.files) lines += line_of(file);
  SHW_TRY(auto file, folder.create_file(kNextJournalFile));
  SHW_CHECK(file->write_at(0, std::as_bytes(std::span(lines))));
  SHW_CHECK(file->sync());
  SHW_CHECK(folder.rename(kNextJournalFile, kJournalFile));
  SHW_CHECK(folder.sync());
  std::unique_ptr<Journal> journal(new Journal(std::move(file)));
  journal->end_ = lines.size();
  return journal;
}

Status Journal::add(const DurableFile& file) {
  std::string line = line_of(file);
  std::unique_lock lock(guard_);
  pending_ += line;
  if (writing_) return {};  // the thread that is writing also writes the new lines
  writing_ = true;
  Status status;
  while (!pending_.empty() && status) {
    std::string lines = std::exchange(pending_, {});
    std::uint64_t at = end_;
    end_ += lines.size();
    lock.unlock();
    status = file_->write_at(at, std::as_bytes(std::span(lines)));
    if (status) status = file_->sync();
    lock.lock();
  }
  writing_ = false;
  return status;
}

}  // namespace shw
