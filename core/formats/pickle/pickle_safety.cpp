#include "core/formats/pickle/pickle_safety.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/formats/pickle/pickle_calls.h"
#include "core/formats/pickle/pickle_names.h"
#include "core/tensor/dtype.h"

namespace shw {
namespace {

using Name = std::pair<std::string_view, std::string_view>;

constexpr auto kKnownNames = std::to_array<Name>({
    {"torch.distributed.checkpoint.metadata", "Metadata"},
    {"torch.distributed.checkpoint.metadata", "TensorStorageMetadata"},
    {"torch.distributed.checkpoint.metadata", "BytesStorageMetadata"},
    {"torch.distributed.checkpoint.metadata", "ChunkStorageMetadata"},
    {"torch.distributed.checkpoint.metadata", "MetadataIndex"},
    {"torch.distributed.checkpoint.metadata", "TensorProperties"},
    {"torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING"},
    {"torch.distributed.checkpoint.metadata", "StorageMeta"},
    {"torch.distributed.checkpoint.filesystem", "_StorageInfo"},
    {"torch.distributed.checkpoint.planner", "SavePlan"},
    {"torch.distributed.checkpoint.planner", "WriteItem"},
    {"torch.distributed.checkpoint.planner", "WriteItemType"},
    {"torch.distributed.checkpoint.planner", "TensorWriteData"},
    {"torch.distributed.checkpoint.planner", "BytesIOWriteData"},
    {"torch.distributed._shard.sharded_tensor.metadata", "TensorProperties"},
    {"torch.distributed._shard.sharded_tensor.metadata", "MEM_FORMAT_ENCODING"},
    {"torch", "Size"},
    {"torch", "device"},
    {"torch", "strided"},
    {"torch", "contiguous_format"},
    {"torch", "channels_last"},
    {"torch", "preserve_format"},
    {"torch", "Tensor"},
    {"torch", "Generator"},
    {"torch", "per_tensor_affine"},
    {"torch", "per_channel_affine"},
    {"torch.serialization", "_get_layout"},
    {"torch.storage", "UntypedStorage"},
    {"torch.storage", "TypedStorage"},
    {"torch._utils", "_rebuild_tensor"},
    {"torch._utils", "_rebuild_tensor_v2"},
    {"torch._utils", "_rebuild_tensor_v3"},
    {"torch._utils", "_rebuild_parameter"},
    {"torch._utils", "_rebuild_parameter_with_state"},
    {"torch._utils", "_rebuild_qtensor"},
    {"torch._utils", "_rebuild_sparse_tensor"},
    {"torch._utils", "_rebuild_meta_tensor_no_storage"},
    {"torch._utils", "_rebuild_wrapper_subclass"},
    {"torch._utils", "_rebuild_device_tensor_from_numpy"},
    {"torch._tensor", "_rebuild_from_type_v2"},
    {"torch.nn.parameter", "Parameter"},
    {"torch.nn.parameter", "Buffer"},
    {"torch._C", "Generator"},
    {"torch.distributed.tensor", "DTensor"},
    {"torch.distributed.tensor", "Shard"},
    {"torch.distributed.tensor", "Replicate"},
    {"torch.distributed.tensor.placement_types", "Shard"},
    {"torch.distributed.tensor.placement_types", "Replicate"},
    {"torch.distributed.tensor.placement_types", "_StridedShard"},
    {"torch.distributed.device_mesh", "DeviceMesh"},
    {"nemo_automodel.components.checkpoint._backports.filesystem", "_StorageInfo"},
    {"deepspeed.runtime.fp16.loss_scaler", "DynamicLossScaler"},
    {"deepspeed.runtime.fp16.loss_scaler", "LossScaler"},
    {"deepspeed.runtime.zero.config", "ZeroStageEnum"},
    {"deepspeed.utils.tensor_fragment", "fragment_address"},
    {"collections", "OrderedDict"},
    {"collections", "defaultdict"},
    {"collections", "deque"},
    {"collections", "Counter"},
    {"collections", "ChainMap"},
    {"array", "array"},
    {"array", "_array_reconstructor"},
    {"re", "_compile"},
    {"time", "struct_time"},
    {"argparse", "Namespace"},
    {"types", "SimpleNamespace"},
    {"_io", "BytesIO"},
    {"io", "BytesIO"},
    {"signal", "Signals"},
    {"uuid", "UUID"},
    {"_codecs", "encode"},
    {"copyreg", "_reconstructor"},
    {"copy_reg", "_reconstructor"},
    {"decimal", "Decimal"},
    {"fractions", "Fraction"},
    {"random", "Random"},
    {"numpy", "ndarray"},
    {"numpy", "dtype"},
});

// Functions without side effects when called by an unpickler.
constexpr auto kHarmlessBuiltins = std::to_array<std::string_view>(
    {"abs",    "all",    "any",      "callable",     "chr",         "divmod",     "enumerate",
     "filter", "format", "hash",     "hex",          "id",          "isinstance", "issubclass",
     "iter",   "len",    "map",      "max",          "min",         "next",       "oct",
     "ord",    "pow",    "repr",     "reversed",     "round",       "sorted",     "sum",
     "type",   "super",  "property", "staticmethod", "classmethod", "zip",        "print"});
constexpr auto kPathClasses = std::to_array<std::string_view>(
    {"PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath", "Path", "PurePath"});
// torch.save uses protocol 2 with Python 2 names: range is written as xrange.
constexpr auto kPlainBuiltins = std::to_array<std::string_view>(
    {"set",  "frozenset", "list",      "dict",    "tuple",    "int",           "float",
     "str",  "bytes",     "bytearray", "complex", "slice",    "range",         "xrange",
     "bool", "object",    "unicode",   "long",    "Ellipsis", "NotImplemented"});
constexpr auto kNumpyNames = std::to_array<std::string_view>({"_reconstruct",
                                                              "scalar",
                                                              "_frombuffer",
                                                              "__randomstate_ctor",
                                                              "__bit_generator_ctor",
                                                              "__generator_ctor",
                                                              "SeedSequence",
                                                              "__pyx_unpickle_SeedSequence",
                                                              "PCG64DXSM",
                                                              "MT19937",
                                                              "PCG64",
                                                              "Philox",
                                                              "SFC64",
                                                              "Float32DType",
                                                              "Float64DType",
                                                              "Int64DType",
                                                              "Int32DType",
                                                              "UInt8DType",
                                                              "UInt32DType",
                                                              "BoolDType"});
constexpr auto kDatetimeNames =
    std::to_array<std::string_view>({"datetime", "date", "time", "timedelta", "timezone"});
// True if one character differs. Two digits may differ in dtypes of other torch versions: uint4.
bool is_corrupted_spelling(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t others = 0;
  for (std::size_t i = 0; i < a.size() && others < 2; ++i) {
    if (a[i] == b[i]) continue;
    others += is_digit(a[i]) && is_digit(b[i]) ? 2 : 1;
  }
  return others == 1;
}

bool is_known(std::string_view module, std::string_view name) {
  if (has_side_effects_in_name(name)) return false;
  if (std::find(kKnownNames.begin(), kKnownNames.end(), Name{module, name}) != kKnownNames.end())
    return true;
  if (is_script_module(module)) return true;
  if (module == "torch")
    return dtype_from_torch(name).has_value() || dtype_from_storage_class(name).has_value();
  if (module == "pathlib" || module == "pathlib._local") return is_one_of(name, kPathClasses);
  if (module == "builtins" || module == "__builtin__") return is_one_of(name, kPlainBuiltins);
  if (module == "datetime") return is_one_of(name, kDatetimeNames);
  if (module.starts_with("numpy.")) return is_one_of(name, kNumpyNames);
  // A three-field record of other DCP writers (OLMo-core, NeMo). With a name one letter off torch's
  // module a byte of the file has changed.
  if (name == "_StorageInfo" && module.find("checkpoint") != std::string_view::npos)
    return !is_corrupted_spelling(module, "torch.distributed.checkpoint.filesystem");
  // Dataclasses and enums of these packages are data; functions are not.
  if (module.starts_with("megatron.") || module.starts_with("transformer_engine.") ||
      module.starts_with("bytecheckpoint.") || module.starts_with("torch.distributed._shard."))
    return resembles_class_name(name);
  return false;
}

// CamelCase names are classes, whose construction runs only their __init__ or __setstate__.
// functools.partial stores a callable without calling it.
bool is_partial(std::string_view module, std::string_view name) {
  return module == "functools" && name == "partial";
}

// Objects of the standard library and unrestricted modules that run nothing while unpickling. A
// getter is only created; calls of computed objects are reported separately.
bool is_harmless_import(std::string_view module, std::string_view name, bool called) {
  if (constructs_data_only(module, name)) return true;
  if (module == "operator" || module == "_operator")
    return name == "attrgetter" || name == "itemgetter" || !called;
  if (module == "zoneinfo") {
    const std::size_t dot = name.find('.');
    return dot == std::string_view::npos ||
           is_self_pickling_method(module, name.substr(0, dot), name.substr(dot + 1));
  }
  if (module != "builtins" && module != "__builtin__") return false;
  if (resembles_class_name(name)) return name.ends_with("Error") || name.ends_with("Warning");
  return !called && is_one_of(name, kHarmlessBuiltins);
}

bool is_of_python(std::string_view full) {
  constexpr auto kModules = std::to_array<std::string_view>(
      {"builtins.", "__builtin__.", "operator.", "_operator.", "itertools.", "zoneinfo."});
  return std::any_of(kModules.begin(), kModules.end(),
                     [&](std::string_view module) { return full.starts_with(module); });
}

// The owner of the names, for the text about names that need a program.
enum class NameOwner : std::uint8_t { kTorch, kPython, kProgram };

NameOwner origin_of_pickled_name(const std::string& full) {
  if (full.starts_with("torch.")) return NameOwner::kTorch;
  return is_of_python(full) ? NameOwner::kPython : NameOwner::kProgram;
}

// Ends the sentence "Loading this file would import NAMES": says which loaders accept the names and
// which refuse them. `one`: there is a single name.
std::string harmless_text(NameOwner whose, bool one) {
  if (whose == NameOwner::kTorch)
    return fmt::format(
        ", {} of torch: with weights_only=True torch.load accepts {} only if allowed "
        "(torch.serialization.add_safe_globals; importing torch.distributed.tensor allows what "
        "DTensors need).",
        one ? "a name" : "names", one ? "it" : "them");
  if (whose == NameOwner::kPython)
    return fmt::format(
        ", {} of Python's standard library: plain pickle loads {} and {} nothing, and torch.load "
        "refuses {} with weights_only=True, which is its default since torch 2.6.",
        one ? "a name" : "names", one ? "it" : "them", one ? "it runs" : "they run",
        one ? "it" : "them");
  return fmt::format(
      ", {} of another program: {} that program, and torch.load refuses {} with "
      "weights_only=True.",
      one ? "a name" : "names", one ? "it needs" : "they need", one ? "it" : "them");
}

std::string import_cause(const std::string& full, bool called, Severity severity) {
  std::string would =
      std::string("Loading this file with torch would ") + (called ? "call " : "import ") + full;
  if (severity == Severity::kInfo) return would + harmless_text(origin_of_pickled_name(full), true);
  return would + ", which no checkpoint needs; Shardwright only parsed it and ran nothing.";
}

Finding finding_of(const PickleGlobal& global, NameKind kind, const std::string& subject,
                   PickleFileContent of) {
  bool called = global.called_at.has_value();
  std::string full = global.module + "." + global.name;
  Finding finding{
      .rule = "unsafe-pickle",
      .severity = called || kind == NameKind::kDangerous ? Severity::kError : Severity::kWarning};
  if (of == PickleFileContent::kPrograms)
    finding.severity = severity_of_import(global.module, global.name, kind, called, of);
  finding.subjects = {subject};
  finding.cause = import_cause(full, called, finding.severity);
  finding.evidence.emplace_back("global", full);
  finding.evidence.emplace_back("offset",
                                static_cast<std::int64_t>(called ? *global.called_at : global.at));
  finding.evidence.emplace_back("called", called);
  return finding;
}

constexpr std::size_t kMaxNames = 64;  // in the evidence

// Infos about names of one owner, as one finding.
class HarmlessNames {
 public:
  void add(const PickleGlobal& global, Finding finding) {
    std::string full = global.module + "." + global.name;
    Names& names = of_[origin_of_pickled_name(full)];
    if (names.all.empty()) names.first = std::move(finding);
    names.all.push_back(std::move(full));
  }
  void move_to(std::vector<Finding>& findings) {
    for (auto& [whose, names] : of_) {
      if (names.all.size() > 1) {
        names.first.cause = "Loading this file with torch would import " +
                            short_list_text(names.all, 6) + harmless_text(whose, false);
        const auto count = static_cast<std::int64_t>(names.all.size());
        names.all.resize(std::min(names.all.size(), kMaxNames));
        names.first.evidence = {{"globals", std::move(names.all)}, {"count", count}};
      }
      findings.push_back(std::move(names.first));
    }
  }

 private:
  struct Names {
    Finding first;
    std::vector<std::string> all;
  };
  std::map<NameOwner, Names> of_;
};

}  // namespace

std::optional<std::string> similar_known_name(std::string_view module, std::string_view name) {
  if (classify_pickled_name(module, name) != NameKind::kUnknown) return std::nullopt;
  const std::string full = std::string(module) + "." + std::string(name);
  auto is_beside = [&](std::string_view package, std::string_view known) {
    return full.size() == package.size() + 1 + known.size() &&
           is_corrupted_spelling(full, std::string(package) + "." + std::string(known));
  };
  for (const auto& [package, known] : kKnownNames) {
    if (is_beside(package, known)) return std::string(package) + "." + std::string(known);
  }
  for (int i = 1; i < static_cast<int>(Dtype::kCount); ++i) {
    const DtypeInfo& known = info(static_cast<Dtype>(i));
    for (std::string_view word : {known.name, known.storage_class}) {
      if (!word.empty() && is_beside("torch", word)) return "torch." + std::string(word);
    }
  }
  return std::nullopt;
}

std::string corrupted_name_text(const PickleGlobal& global, const std::string& known) {
  return fmt::format(
      "it names {}.{}, one letter different from {}: a byte was changed, so torch cannot load it",
      global.module, global.name, known);
}

NameKind classify_pickled_name(std::string_view module, std::string_view name) {
  if (is_known(module, name)) return NameKind::kKnown;
  return has_side_effects_in_module(module) || has_side_effects_in_name(name) ? NameKind::kDangerous
                                                                              : NameKind::kUnknown;
}

NameKind classify_pickled_name(const PickleGlobal& global) {
  if (global.is_enum_member_lookup && !global.called_at) return NameKind::kKnown;
  return classify_pickled_name(global.module, global.name);
}

// torch.load refuses these by default, so a warning at most; DCP entries are unpickled without that
// check.
Severity severity_of_unknown_call(ModuleOrigin home, std::string_view name, PickleFileContent of) {
  // Healthy checkpoints contain classes of the program, which must be importable.
  if (is_path_of_classes(name)) return Severity::kInfo;
  const bool is_refused = home == ModuleOrigin::kFramework || of == PickleFileContent::kPrograms;
  return is_refused ? Severity::kWarning : Severity::kError;
}

Severity severity_of_import(std::string_view module, std::string_view name, NameKind kind,
                            bool called, PickleFileContent of) {
  if (is_partial(module, name) || is_harmless_import(module, name, called)) return Severity::kInfo;
  if (kind == NameKind::kDangerous) return Severity::kError;
  if (!called) return Severity::kInfo;
  const ModuleOrigin home = module_origin(module);
  // A tensor pickled without torch.save: a nested pickle.
  if (module == "torch.storage" && name == "_load_from_bytes") return Severity::kWarning;
  if (home == ModuleOrigin::kPython || home == ModuleOrigin::kLibrary) return Severity::kError;
  return severity_of_unknown_call(home, name, of);
}

std::vector<Finding> unsafe_pickle_findings(const PickleTree& tree, const std::string& subject,
                                            PickleFileContent of) {
  constexpr std::size_t kMost = 32;
  std::vector<Finding> findings;
  HarmlessNames harmless;
  std::int64_t more = 0;
  for (const PickleGlobal& global : tree.globals()) {
    NameKind kind = classify_pickled_name(global);
    if (kind == NameKind::kKnown) continue;
    if (auto known = similar_known_name(global.module, global.name);
        known && findings.size() < kMost) {
      Finding bent{.rule = "bad-record", .subjects = {subject}};
      bent.cause = "In " + subject + ": " + corrupted_name_text(global, *known) + ".";
      bent.evidence = {{"global", global.module + "." + global.name},
                       {"offset", static_cast<std::int64_t>(global.at)}};
      findings.push_back(std::move(bent));
      continue;
    }
    Finding finding = finding_of(global, kind, subject, of);
    if (finding.severity == Severity::kInfo)
      harmless.add(global, std::move(finding));
    else if (findings.size() == kMost)
      ++more;
    else
      findings.push_back(std::move(finding));
  }
  harmless.move_to(findings);
  if (more > 0) {
    Finding rest{.rule = "unsafe-pickle", .severity = Severity::kError, .subjects = {subject}};
    rest.cause = fmt::format("It names {} more things that no checkpoint needs.", more);
    rest.evidence.emplace_back("more", more);
    findings.push_back(std::move(rest));
  }
  if (tree.unusual_call_at()) {
    Finding odd{.rule = "unsafe-pickle", .severity = Severity::kError, .subjects = {subject}};
    odd.cause =
        "Loading this file with torch would call or change something that the pickle computes or "
        "imports; "
        "Shardwright only parsed it and ran nothing.";
    odd.evidence.emplace_back("offset", static_cast<std::int64_t>(*tree.unusual_call_at()));
    findings.push_back(std::move(odd));
  }
  return findings;
}

}  // namespace shw
