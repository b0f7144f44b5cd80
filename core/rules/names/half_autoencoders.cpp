#include "core/rules/names/half_autoencoders.h"

#include <fmt/core.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/model/unread_files.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// The names of diffusers' autoencoders, then those of latent diffusion.
struct HalvesOfAutoencoder {
  std::string_view down, up, encoder_middle, decoder_middle;
};
constexpr auto kAutoencoders = std::to_array<HalvesOfAutoencoder>(
    {{"encoder.down_blocks.", "decoder.up_blocks.", "encoder.mid_block.", "decoder.mid_block."},
     {"encoder.down.", "decoder.up.", "encoder.mid.", "decoder.mid."}});

struct AutoencoderParts {
  bool down = false, up = false, encoder_middle = false, decoder_middle = false;
};

// What comes before the part in a name: "vae." of "vae.encoder.mid_block.resnets.0.conv1.weight".
std::optional<std::string_view> parent_of_part(std::string_view fqn, std::string_view part) {
  const std::size_t at = fqn.find(part);
  const bool is_part = at != std::string_view::npos && (at == 0 || fqn[at - 1] == '.');
  return is_part ? std::optional(fqn.substr(0, at)) : std::nullopt;
}

}  // namespace

void find_half_autoencoders(const Facts& facts, std::vector<Finding>& findings) {
  if (!are_all_files_read(facts.checkpoint)) return;
  std::vector<std::string> missing;
  for (const HalvesOfAutoencoder& names : kAutoencoders) {
    std::map<std::string_view, AutoencoderParts> parents;
    for (TensorId tensor : each_tensor(facts)) {
      const std::string_view fqn = facts.checkpoint.fqn(tensor);
      if (auto parent = parent_of_part(fqn, names.down)) parents[*parent].down = true;
      if (auto parent = parent_of_part(fqn, names.up)) parents[*parent].up = true;
      if (auto parent = parent_of_part(fqn, names.encoder_middle))
        parents[*parent].encoder_middle = true;
      if (auto parent = parent_of_part(fqn, names.decoder_middle))
        parents[*parent].decoder_middle = true;
    }
    for (const auto& [parent, there] : parents) {
      if (!there.down || !there.up || there.encoder_middle == there.decoder_middle) continue;
      const std::string_view lost =
          there.encoder_middle ? names.decoder_middle : names.encoder_middle;
      missing.push_back(std::string(parent) + std::string(lost.substr(0, lost.size() - 1)));
    }
  }
  if (missing.empty()) return;
  Finding finding{.rule = std::string(kHalfPair.id), .severity = Severity::kWarning};
  finding.cause = fmt::format(
      "{} {} missing, though the other half of the autoencoder has its middle block. Both halves "
      "have one in all such models: a load fails, or initializes the block at random.",
      short_list_text(missing), missing.size() == 1 ? "is" : "are");
  finding.evidence = {{"missing", capped(missing)}, {"count", count_of(missing.size())}};
  finding.subjects = std::move(missing);
  findings.push_back(std::move(finding));
}

}  // namespace shw
