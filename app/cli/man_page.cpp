// Generates the man page from the verb table, with general sections.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "app/cli/command_text.h"
#include "app/cli/options.h"
#include "core/base/version.h"

namespace shw::cli {
namespace {

constexpr OptionNote kNotes[] = {
    {"--against",
     "Where there is no spec another checkpoint of the same model says what is expected. Bytes of "
     "fused and square weights are compared with it (of all tensors with --data), so that blocks "
     "in another order, transposes, padding, ties and renumbered layers are found, and repaired "
     "where the bytes prove them."},
    {"--depth", "The default is headers up to 100,000 items and metadata above."},
    {"--data",
     "The same as --depth data: checksums included, and the SHA-256 of every file that an "
     "integrity.json (Megatron-LM) next to the checkpoint names."},
    {"--baseline",
     "It knows findings of the same rule about all of their subjects, no less grave and with no "
     "less in what their evidence counts. What could not be checked exits 2 all the same."},
    {"--policy",
     "JSON, {\"require\": [\"coverage\", \"finite\", \"optimizer-complete\"]}, or lines of "
     "require: coverage, finite. A broken one exits 1 whatever could not be checked, one that is "
     "open 2; finite needs --data."},
    {"--memory",
     "A compressed item that does not fit is decoded next to the output, into a file without a "
     "name, by what makes a folder, and while it is read by all others. A check holds sums of rows "
     "and decoded items next to a reference; without one it takes a few MiB for each thread, as "
     "statistics do, whatever the size of a tensor."},
    {"--integrity",
     "certificate.json is not listed: it certifies the list. Megatron-LM verifies it with "
     "--verify-integrity."},
    {"--fill",
     "Zeros; masters cast from the model's weights and zeros elsewhere (the default); or the same "
     "elements of another checkpoint. They stay marked as lost: lost.json next to the certificate "
     "lists every box."},
    {"--color", "NO_COLOR and CLICOLOR_FORCE are obeyed."},
};

constexpr const char* kAbout =
    "Opens a checkpoint that many ranks saved (PyTorch DCP, Hugging Face safetensors, sharded or "
    "not, one file of torch.save, HDF5: weights of Keras 3, or one file per rank with the "
    "attributes "
    "offsets and global_shape), shows which rank wrote which tile of which tensor, says in plain "
    "words what is wrong, and repairs it.\n\nCHECKPOINT is a folder, or its .metadata. RUN/@latest "
    "is the newest step of a run: the folder in it of the greatest number. RUN/@latest-complete is "
    "the newest whose save has finished and of which, by its metadata, no file and no tile is "
    "missing; what was passed over is said. What is below each step may follow: RUN/@latest/model. "
    "Nothing in a checkpoint is ever executed, and nothing is written into it except by repair "
    "--in-place.";

constexpr OptionNote kCodes[] = {
    {"0", "Clean, or done."},
    {"1", "Findings at or above --fail-on, a difference, or no matching tensor."},
    {"2", "Undecided: damaged, incomplete, unsupported, or interrupted."},
    {"3", "Wrong use."},
    {"4", "The system refused to read or write."},
    {"130", "Stopped by Ctrl-C."},
};

constexpr const char* kSignals =
    "SIGINT (Ctrl-C), SIGTERM and SIGHUP stop cleanly and keep finished files; the error names the "
    "command to continue. A second signal stops immediately. The same happens if a disk is full or "
    "lost.";

// Escapes text for roff: backslashes, dashes, and lines that begin like a request.
std::string escape_for_roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool begins = out.empty() || out.back() == '\n';
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

// One paragraph per line; `between` is the separating request.
std::string paragraphs(std::string_view text, const char* between) {
  std::string out;
  while (!text.empty()) {
    std::size_t end = text.find("\n\n");
    if (!out.empty()) out += std::string(between) + "\n";
    out += escape_for_roff(text.substr(0, end)) + "\n";
    text.remove_prefix(end == text.npos ? text.size() : end + 2);
  }
  return out;
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (text.back() != '.') text += '.';
  return text;
}

std::string place_text(const ArgumentUse& place) {
  std::string text = "\\fI" + escape_for_roff(place.names.front()) + "\\fR";
  if (place.repeats) text += " ...";
  return place.is_required ? text : "[" + text + "]";
}

// Options that nearly all verbs have.
constexpr std::string_view kOfAll[] = {"--help", "--json", "--quiet", "--color", "--threads"};

std::string verb_entry(const VerbUse& verb) {
  std::string text = ".TP\n\\fB" + escape_for_roff(verb.name) + "\\fR";
  for (const ArgumentUse& place : verb.places) text += " " + place_text(place);
  text += "\n" + escape_for_roff(sentence(verb.summary)) + "\n";
  if (!verb.details.empty()) text += ".IP\n" + paragraphs(verb.details, ".IP");
  std::string taken;
  for (const ArgumentUse& option : verb.options) {
    const std::string& name = long_name(option);
    if (is_common_option(name)) continue;
    taken += (taken.empty() ? "" : ", ") + ("\\fB" + escape_for_roff(name) + "\\fR");
  }
  if (!taken.empty()) text += ".IP\nTakes " + taken + ".\n";
  return text;
}

// An entry for verbs that share the option and its meaning.
struct OptionEntry {
  ArgumentUse option;
  std::vector<std::string> verbs;
};

std::vector<OptionEntry> option_entries(const std::vector<VerbUse>& verbs) {
  std::vector<OptionEntry> entries;
  for (const VerbUse& verb : verbs) {
    for (const ArgumentUse& option : verb.options) {
      auto same = std::find_if(entries.begin(), entries.end(), [&](const OptionEntry& entry) {
        return entry.option.names == option.names && entry.option.text == option.text;
      });
      if (same == entries.end()) same = entries.insert(entries.end(), {option, {}});
      same->verbs.push_back(verb.name);
    }
  }
  return entries;
}

// `most`: options of at least this many verbs do not list them.
std::string option_entry(const OptionEntry& entry, std::size_t most, bool is_first) {
  const ArgumentUse& option = entry.option;
  std::string text = ".TP\n";
  for (std::size_t i = 0; i < option.names.size(); ++i)
    text += (i == 0 ? "\\fB" : ", \\fB") + escape_for_roff(option.names[i]) + "\\fR";
  if (!option.value.empty()) text += " \\fI" + escape_for_roff(option.value) + "\\fR";
  text += "\n";
  if (entry.verbs.size() < most) {
    std::string verbs;
    for (const std::string& verb : entry.verbs)
      verbs += (verbs.empty() ? "Of " : ", ") + ("\\fB" + escape_for_roff(verb) + "\\fR");
    text += verbs + ".\n";
  }
  text += escape_for_roff(sentence(option.text)) + "\n";
  for (const OptionNote& note : kNotes) {
    if (is_first && long_name(option) == note.option) text += escape_for_roff(note.text) + "\n";
  }
  return text;
}

}  // namespace

std::span<const OptionNote> option_notes() {
  return kNotes;
}
std::span<const OptionNote> exit_codes() {
  return kCodes;
}
bool is_common_option(const std::string& long_name) {
  return std::find(std::begin(kOfAll), std::end(kOfAll), long_name) != std::end(kOfAll);
}

std::string man_page(const std::vector<VerbUse>& verbs) {
  std::string text = fmt::format(
      ".\\\" made by `shardwright completion man`\n"
      ".TH SHARDWRIGHT 1 \"\" \"shardwright {}\" \"User Commands\"\n"
      ".SH NAME\nshardwright \\- look into sharded checkpoints, say what is wrong, repair it with "
      "proof\n.SH SYNOPSIS\n\\fBshardwright\\fR \\fIVERB CHECKPOINT\\fR [\\fIoptions\\fR]\n",
      kProgramVersion);
  text += ".SH DESCRIPTION\n" + paragraphs(kAbout, ".PP");
  text += ".SH VERBS\n";
  for (const VerbUse& verb : verbs) text += verb_entry(verb);
  text += ".SH OPTIONS\n";
  std::set<std::string> told;
  for (const OptionEntry& entry : option_entries(verbs)) {
    bool is_first = told.insert(long_name(entry.option)).second;
    text += option_entry(entry, verbs.size() - 1, is_first);
  }
  text += ".SH EXAMPLES\n.nf\n";
  for (const VerbUse& verb : verbs) text += escape_for_roff(verb.examples) + "\n";
  text += ".fi\n.SH EXIT STATUS\n";
  for (const OptionNote& code : kCodes)
    text += fmt::format(".TP\n.B {}\n{}\n", code.option, escape_for_roff(code.text));
  return text + ".SH SIGNALS\n" + escape_for_roff(kSignals) + "\n";
}

}  // namespace shw::cli
