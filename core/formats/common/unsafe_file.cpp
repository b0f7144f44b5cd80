#include "core/formats/common/unsafe_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <span>
#include <utility>

#include "core/base/little_endian.h"
#include "core/formats/common/magic.h"
#include "core/formats/common/nested_storage.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/pickle/pickle_safety.h"
#include "core/formats/zip/zip.h"

namespace shw {
namespace {

constexpr std::uint64_t kMostPickle = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxUnmapped = std::uint64_t{4} << 20;
constexpr std::size_t kMaxPickles = 16;  // in one file
constexpr std::size_t kMaxTold = 8;
constexpr PickleLimits kUnsafePickleLimits{1u << 22, 200, 1u << 14};

using ImportedName = std::pair<std::string_view, std::string_view>;  // module, name
constexpr std::size_t kLongestImport = 100;

bool is_imported_text(std::string_view text) {
  return !text.empty() && text.size() <= kLongestImport &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
}

// The operands of GLOBAL: "posix\nsystem\n".
std::optional<ImportedName> parse_global_operands(std::string_view rest) {
  rest = rest.substr(0, 2 * kLongestImport + 2);
  const std::size_t first = rest.find('\n');
  if (first == rest.npos) return std::nullopt;
  const std::size_t second = rest.find('\n', first + 1);
  if (second == rest.npos) return std::nullopt;
  const ImportedName named{rest.substr(0, first), rest.substr(first + 1, second - first - 1)};
  const bool is_named = is_imported_text(named.first) && is_imported_text(named.second);
  return is_named ? std::optional(named) : std::nullopt;
}

// Takes a SHORT_BINUNICODE, and the MEMOIZE after it, off the end.
std::optional<std::string_view> consume_last_text(std::string_view& text) {
  constexpr char kShortBinUnicode = '\x8c', kMemoize = '\x94';
  if (text.ends_with(kMemoize)) text.remove_suffix(1);
  for (std::size_t length = 1; length <= kLongestImport && length + 2 <= text.size(); ++length) {
    const std::size_t begin = text.size() - length;
    if (text[begin - 2] != kShortBinUnicode ||
        static_cast<unsigned char>(text[begin - 1]) != length)
      continue;
    const std::string_view found = text.substr(begin);
    text.remove_suffix(length + 2);
    return is_imported_text(found) ? std::optional(found) : std::nullopt;
  }
  return std::nullopt;
}

// The two texts before STACK_GLOBAL.
std::optional<ImportedName> parse_stack_global_operands(std::string_view text) {
  const auto name = consume_last_text(text);
  const auto module = name ? consume_last_text(text) : std::nullopt;
  return module ? std::optional(ImportedName{*module, *name}) : std::nullopt;
}

bool has_evidence_of_global(const Finding& finding, std::string_view global) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const auto& evidence) {
    const auto* text = std::get_if<std::string>(&evidence.second);
    return text != nullptr && *text == global;
  });
}

class UnsafeFile {
 public:
  UnsafeFile(const ByteSource& source, const std::string& path) : source_(source), path_(path) {}

  std::vector<Finding> run(const std::shared_ptr<const ByteSource>& shared) {
    auto first = read_bytes(source_, 0, std::min<std::uint64_t>(source_.size(), 4));
    if (!first || first->size() < 2) return {};
    const bool is_zip = first->size() == 4 && load_little<std::uint32_t>(*first) == kZipMagic;
    if (!is_zip || !scan_zip(shared)) scan_file();
    return std::move(findings_);
  }

 private:
  // False if the archive cannot be read.
  bool scan_zip(const std::shared_ptr<const ByteSource>& shared) {
    auto zip = ZipReader::open(shared, 0, source_.size());
    if (!zip) return false;
    std::size_t seen = 0;
    for (const ZipEntry& entry : zip->entries()) {
      if (!entry.name.ends_with(".pkl") && !entry.name.ends_with(".pickle")) continue;
      if (++seen > kMaxPickles) break;
      if (auto bytes = zip->read(entry, kMostPickle)) look_at(*bytes);
    }
    return true;
  }

  // Bare pickles in a row: torch.save before zip has five, followed by the elements.
  void scan_file() {
    if (const BytesView mapped = source_.mapped(); !mapped.empty()) return look_at(mapped);
    auto bytes = read_bytes(source_, 0, std::min(source_.size(), kMaxUnmapped));
    if (bytes) look_at(*bytes);
  }

  void look_at(BytesView bytes) {
    for (std::size_t pickle = 0; pickle < kMaxPickles && !bytes.empty(); ++pickle) {
      auto tree = decode_pickle(bytes, path_, 0, kUnsafePickleLimits);
      if (!tree) return scan_before_damage(bytes, tree.error());
      take(*tree);
      bytes = bytes.subspan(std::min<std::size_t>(tree->end(), bytes.size()));
    }
  }

  void scan_before_damage(BytesView bytes, const Error& error) {
    if (!error.place.offset || *error.place.offset > bytes.size()) return;
    scan_between_arrays(bytes);
    Bytes begin(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(*error.place.offset));
    for (char opcode : {'N', '.'}) begin.push_back(static_cast<std::byte>(opcode));
    if (auto tree = decode_pickle(begin, path_, 0, kUnsafePickleLimits)) take(*tree);
  }

  // joblib puts the elements of arrays between opcodes, so that no pickle can be decoded past the
  // first array. Dangerous names after it are found by their bytes.
  void scan_between_arrays(BytesView bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.substr(0, kMaxUnmapped).find("joblib.numpy_pickle") == std::string_view::npos) return;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const auto named = text[at] == 'c'      ? parse_global_operands(text.substr(at + 1))
                         : text[at] == '\x93' ? parse_stack_global_operands(text.substr(0, at))
                                              : std::nullopt;
      if (!named || classify_pickled_name(named->first, named->second) != NameKind::kDangerous)
        continue;
      const std::string call = fmt::format("c{}\n{}\n)R.", named->first, named->second);
      auto tree = decode_pickle(std::as_bytes(std::span(call)), path_, 0, kUnsafePickleLimits);
      if (tree && findings_.empty()) take(*tree);
    }
  }

  void take(const PickleTree& tree) {
    // pickle and joblib write the tensors of a torch module so.
    const bool may_nest = are_nested_storages_plain(tree);
    for (Finding& finding : unsafe_pickle_findings(tree, path_, PickleFileContent::kPrograms)) {
      if (may_nest && has_evidence_of_global(finding, kNestedLoad)) continue;
      const bool is_told = finding.rule == "unsafe-pickle" && finding.severity > Severity::kInfo;
      if (is_told && findings_.size() < kMaxTold) findings_.push_back(std::move(finding));
    }
  }

  const ByteSource& source_;
  const std::string& path_;
  std::vector<Finding> findings_;
};

}  // namespace

bool is_named_as_pickle(std::string_view path) {
  constexpr auto kEndings = std::to_array<std::string_view>(
      {".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt", ".p", ".joblib", ".dill"});
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

std::vector<Finding> unsafe_findings_of_file(const Directory& directory, const std::string& path) {
  auto source = directory.open(path);
  if (!source) return {};
  return UnsafeFile(**source, path).run(*source);
}

}  // namespace shw
