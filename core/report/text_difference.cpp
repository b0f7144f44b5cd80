#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "core/base/words.h"
#include "core/facts/names/name_families.h"
#include "core/report/difference_report.h"
#include "core/report/text.h"
#include "core/tensor/statistics.h"

namespace shw {
namespace {

// Families of names shown per kind; others are counted.
constexpr std::size_t kMaxFamilies = 24;

// Members of a family, largest difference first.
struct Family {
  std::vector<const TensorDifference*> members;
};

double difference_rank(const TensorDifference& tensor) {
  if (!tensor.values) return 0;
  const ValueDifference& values = *tensor.values;
  if (values.elements.nan != 0) return 4;
  if (std::isinf(values.elements.max_abs)) return 3;
  if (values.cosine) return 1 - *values.cosine;
  return 1 + static_cast<double>(values.elements.differing) /
                 static_cast<double>(std::max<std::uint64_t>(values.compared, 1));
}

// Compares relative differences: 0.001 at a weight of 0.01 is more than at one of 10.
bool is_worse(const TensorDifference* x, const TensorDifference* y) {
  return std::pair(difference_rank(*x), x->values ? x->values->elements.max_abs : 0) >
         std::pair(difference_rank(*y), y->values ? y->values->elements.max_abs : 0);
}

std::vector<Family> families_of(const CheckpointDifference& difference, DifferenceKind kind) {
  std::vector<Family> families;
  std::map<std::string, std::size_t> by_name;
  for (const TensorDifference& tensor : difference.tensors) {
    if (tensor.kind != kind || tensor.within) continue;
    auto [found, is_new] = by_name.try_emplace(without_numbers(tensor.fqn), families.size());
    if (is_new) families.emplace_back();
    families[found->second].members.push_back(&tensor);
  }
  for (Family& family : families)
    std::stable_sort(family.members.begin(), family.members.end(), is_worse);
  if (kind == DifferenceKind::kValues)
    std::stable_sort(families.begin(), families.end(), [](const Family& x, const Family& y) {
      return is_worse(x.members.front(), y.members.front());
    });
  return families;
}

const char* heading(DifferenceKind kind) {
  constexpr const char* kHeadings[kDifferenceKinds] = {"only in A",
                                                       "only in B",
                                                       "partly missing",
                                                       "another shape",
                                                       "another dtype",
                                                       "other values",
                                                       "it is not known",
                                                       "renamed, the same bytes",
                                                       "the same, in other tiles"};
  return kHeadings[static_cast<std::size_t>(kind)];
}

Ink ink_of(DifferenceKind kind) {
  if (kind == DifferenceKind::kUndecided) return Ink::kGold;
  return kind == DifferenceKind::kRenamed || kind == DifferenceKind::kRetiled ? Ink::kPlain
                                                                              : Ink::kRed;
}

std::string side_text(const TensorSide& side) {
  return std::string(name(side.dtype)) + " " + to_text(side.shape);
}

std::string tiles_text(const TensorDifference& tensor) {
  return plural(tensor.a->tiles, "tile") + " in A, " + std::to_string(tensor.b->tiles) + " in B";
}

std::string index_text(const Extents& index) {
  return index.empty() ? "" : " at " + to_text(index);
}

// Does not round 0.99998 to 1.
std::string cosine_text(double cosine) {
  double apart = 1 - cosine;
  if (apart == 0) return "1";
  return apart < 1e-3 ? "1 - " + short_number(apart) : short_number(cosine);
}

// "211 of 4,096 elements differ by at most 0.0012 (211 ULP), cosine 0.99998; the first at [0, 3]:
// 1.25 in A, 1.251 in B"
std::string values_text(const ValueDifference& values, Dtype dtype) {
  const ElementDifference& seen = values.elements;
  std::string text =
      human_count(seen.differing) + " of " + human_count(values.compared) + " elements differ";
  NumberKind kind = values.by_value ? NumberKind::kFloat : number_kind(dtype);
  bool by_number = seen.differing != seen.bits_only + seen.nan;
  if (kind == NumberKind::kFloat && by_number) {
    text += " by at most " + short_number(seen.max_abs);
    if (!values.by_value) text += " (" + human_count(seen.max_ulp) + " ULP)";
  }
  if (kind == NumberKind::kInteger && by_number)
    text += " by at most " + human_count(seen.max_whole);
  if (values.elements.beyond != 0)
    text += ", " + human_count(values.elements.beyond) + " beyond the tolerance";
  if (values.cosine) text += ", cosine " + cosine_text(*values.cosine);
  if (seen.nan != 0) text += "; " + human_count(seen.nan) + " are NaN in one of them alone";
  if (seen.bits_only != 0)
    text += "; " + human_count(seen.bits_only) +
            " differ in bits alone (0.0 and -0.0, or two kinds of NaN)";
  if (values.first)
    text += "; the first" + index_text(values.first->index) + ": " + values.first->a + " in A, " +
            values.first->b + " in B";
  return text;
}

std::string reasons_text(const TensorDifference& tensor) {
  std::vector<std::string> parts = tensor.why;
  if (tensor.error) {
    const Error& error = *tensor.error;
    parts.push_back(std::string("in ") + (tensor.error_in == 'a' ? "A " : "B ") +
                    (error.place.file.empty() ? "" : error.place.file + ": ") + error.message);
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

// Details of one tensor next to its name and kind.
std::string details(const TensorDifference& tensor) {
  std::string text;
  auto add = [&](const std::string& more) {
    if (!more.empty()) text += (text.empty() ? "" : "; ") + more;
  };
  switch (tensor.kind) {
    case DifferenceKind::kMissing:
      return side_text(*tensor.a);
    case DifferenceKind::kAdded:
      return side_text(*tensor.b);
    case DifferenceKind::kRenamed:
      return "in B " + tensor.other;
    case DifferenceKind::kRetiled:
      return tiles_text(tensor);
    case DifferenceKind::kReshaped:
    case DifferenceKind::kDtype:
      add(side_text(*tensor.a) + " in A, " + side_text(*tensor.b) + " in B");
      if (tensor.same_elements)
        add(*tensor.same_elements ? "the elements one after the other have the same hash"
                                  : "other elements");
      break;
    case DifferenceKind::kIncomplete:
      add("in no tile: " + human_count(static_cast<std::uint64_t>(tensor.a->missing)) +
          " elements of A, " + human_count(static_cast<std::uint64_t>(tensor.b->missing)) +
          " of B");
      break;
    default:
      break;
  }
  if (tensor.values && tensor.values->elements.differing != 0)
    add(values_text(*tensor.values, tensor.a->dtype));
  else if (tensor.values && tensor.values->by_value && tensor.values->unread == 0)
    add("every value is the same in both");
  add(reasons_text(tensor));
  if (tensor.retiled) add("in other tiles as well: " + tiles_text(tensor));
  return text;
}

void append_family(const Family& family, std::size_t width, const TextStyle& style,
                   std::string& out) {
  const TensorDifference& worst = *family.members.front();
  std::string fqn = printable(worst.fqn), more = printable(details(worst));
  if (2 + display_width(fqn) + 3 + display_width(more) <= width) {
    out += "  " + fqn + (more.empty() ? "" : "   " + more) + "\n";
  } else {
    out += "  " + fqn + "\n" + wrapped(more, 6, width) + "\n";
  }
  if (family.members.size() == 1) return;
  out += inked(style, Ink::kQuiet,
               "      and " + human_count(family.members.size() - 1) + " more of " +
                   printable(without_numbers(worst.fqn))) +
         "\n";
}

void append_kind(const CheckpointDifference& difference, DifferenceKind kind, std::size_t width,
                 const TextStyle& style, std::string& out) {
  std::vector<Family> families = families_of(difference, kind);
  if (families.empty()) return;
  std::uint64_t count = 0, left = 0;
  for (const Family& family : families) count += family.members.size();
  out += "\n" + inked(style, ink_of(kind), heading(kind)) + "   " + plural(count, "tensor") + "\n";
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (i < kMaxFamilies)
      append_family(families[i], width, style, out);
    else
      left += families[i].members.size();
  }
  if (left != 0)
    out += inked(style, Ink::kQuiet, "  and " + human_count(left) + " more; --json has them all") +
           "\n";
}

std::string entry_difference_text(const EntryDifference& entry) {
  if (entry.kind == DifferenceKind::kMissing) return "only in A";
  if (entry.kind == DifferenceKind::kAdded) return "only in B";
  if (entry.kind == DifferenceKind::kUndecided) return entry.why;
  if (entry.a.empty() && entry.b.empty()) return "other values";
  return (entry.a.empty() ? "something else" : entry.a) + " in A, " +
         (entry.b.empty() ? "something else" : entry.b) + " in B";
}

void append_entries(const CheckpointDifference& difference, std::size_t width,
                    const TextStyle& style, std::string& out) {
  if (difference.entries.empty()) return;
  out += "\n" + inked(style, Ink::kGold, "entries that are not tensors") + "   " +
         human_count(difference.entries.size()) + "\n";
  std::map<std::string, std::uint64_t> told;
  std::size_t shown = 0;
  for (const EntryDifference& entry : difference.entries) {
    if (told[without_numbers(entry.fqn)]++ != 0 || shown == kMaxFamilies) continue;
    ++shown;
    out += wrapped(printable(entry.fqn + ": " + entry_difference_text(entry)), 2, width) + "\n";
  }
  if (shown < difference.entries.size())
    out += inked(style, Ink::kQuiet,
                 "  and " + human_count(difference.entries.size() - shown) +
                     " more like them; --json has them all") +
           "\n";
}

// "3 only in A, 12 other values": counts of the kinds that occur; empty if there are none.
std::string difference_counts_text(const CheckpointDifference& difference) {
  std::vector<std::uint64_t> counts(kDifferenceKinds);
  for (const TensorDifference& tensor : difference.tensors)
    counts[static_cast<std::size_t>(tensor.kind)] += tensor.within ? 0 : 1;
  std::string text;
  for (std::size_t kind = 0; kind < kDifferenceKinds; ++kind) {
    if (counts[kind] == 0) continue;
    text += (text.empty() ? "" : "; ") + human_count(counts[kind]) + " " +
            heading(static_cast<DifferenceKind>(kind));
  }
  if (!difference.entries.empty())
    text += (text.empty() ? "" : "; ") + plural(difference.entries.size(), "entry") +
            (difference.entries.size() == 1 ? " that is not a tensor" : " that are not tensors");
  return text;
}

std::string tolerance_text(const CheckpointDifference& difference) {
  if (!difference.tolerance) return "";
  return ", " + human_count(difference.within) + " within atol " +
         short_number(difference.tolerance->absolute) + " and rtol " +
         short_number(difference.tolerance->relative);
}

// "of 1,142 tensors that both have 1,130 are the same to the bit"
std::string equal_tensors_text(const CheckpointDifference& difference) {
  std::string both = plural(difference.in_both, "tensor") + " that both have";
  if (difference.in_both == 0) return "no tensor is in both";
  if (difference.same == difference.in_both && !difference.data)
    return both + ": the very bytes of the very files, none was read";
  if (difference.same == difference.in_both)
    return difference.in_both == 1 ? "the tensor that both have is the same to the bit"
                                   : "all " + both + " are the same to the bit";
  if (difference.tensors.empty() && !difference.data)
    return (difference.is_mapped ? "names, shapes and dtypes of "
                                 : "names, shapes, dtypes and tiles of ") +
           both + " agree, values were not read";
  if (difference.same == 0 && !difference.data)
    return plural(difference.in_both, "tensor") + (difference.in_both == 1 ? " is" : " are") +
           " in both, values were not read";
  return "of " + both + " " + human_count(difference.same) +
         (difference.same == 1 ? " is" : " are") + " the same to the bit";
}

}  // namespace

std::string difference_to_text(const CheckpointDifference& difference, const Checkpoint& a,
                               const Checkpoint& b, const ComparedPaths& paths,
                               const TextStyle& style) {
  const auto width = static_cast<std::size_t>(std::clamp(style.width, 40, 120));
  std::string out = "A  " + printable(paths.a) + "   " + inked(style, Ink::kQuiet, headline(a)) +
                    "\nB  " + printable(paths.b) + "   " + inked(style, Ink::kQuiet, headline(b)) +
                    "\n";
  Ink ink = difference.verdict == EqualityVerdict::kSame        ? Ink::kGreen
            : difference.verdict == EqualityVerdict::kDifferent ? Ink::kRed
                                                                : Ink::kGold;
  out += "\n" + inked(style, ink, name(difference.verdict)) + ": " +
         equal_tensors_text(difference) + tolerance_text(difference) + "\n";
  if (const std::string counts = difference_counts_text(difference); !counts.empty())
    out += wrapped(counts, 0, width) + "\n";
  for (std::size_t kind = 0; kind < kDifferenceKinds; ++kind)
    append_kind(difference, static_cast<DifferenceKind>(kind), width, style, out);
  append_entries(difference, width, style, out);
  for (const std::string& doubt : difference.doubts)
    out += "\n" + wrapped(printable(doubt), 0, width) + "\n";
  if (!difference.unjudged.empty()) out += not_checked_text(difference.unjudged, width) + "\n";
  return out;
}

}  // namespace shw
