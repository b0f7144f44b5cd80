#include "core/session/pin_run.h"

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "core/base/parse_text.h"
#include "core/session/command_run.h"
#include "core/verbs/place_mark.h"

namespace shw {
namespace {

using Pins = std::vector<verbs::Pin>;

Change change_setting_pins(Pins pins) {
  return [made = std::make_shared<const Pins>(std::move(pins))](Snapshot& s) { s.pins = made; };
}

}  // namespace

// A note is one line.
std::optional<Command> parse_pin(std::string_view rest) {
  return PinCommand{std::string(rest)};
}

std::string print_pin(const Command& command) {
  return as<PinCommand>(command).note;
}

Result<Change> run_pin(const Snapshot& before, const Command& command, Progress*) {
  if (before.checkpoint == nullptr || !before.tensor)
    return fail(ErrorKind::kUsage, "no tensor is selected to be pinned");
  const Checkpoint& checkpoint = *before.checkpoint;
  verbs::Pin pin{std::string(checkpoint.fqn(*before.tensor)), {}, as<PinCommand>(command).note};
  if (before.chunk && index_of(*before.chunk) < checkpoint.chunk_count() &&
      checkpoint.tensor_of(*before.chunk) == before.tensor)
    pin.tile = tile_mark(checkpoint, *before.chunk);
  std::ranges::replace_if(
      pin.note, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  Pins pins = before.pins ? *before.pins : Pins{};
  const auto same = std::ranges::find_if(pins, [&](const verbs::Pin& one) {
    return one.tensor == pin.tensor && one.tile == pin.tile;
  });
  if (same != pins.end())
    *same = std::move(pin);
  else if (pins.size() >= verbs::kMaxPins)
    return fail(ErrorKind::kUsage, "no more than 1,000 places are pinned");
  else
    pins.push_back(std::move(pin));
  return change_setting_pins(std::move(pins));
}

std::optional<Command> parse_unpin(std::string_view rest) {
  const auto pin = parse_number<std::size_t>(rest);
  return pin ? std::optional<Command>(UnpinCommand{*pin}) : std::nullopt;
}

std::string print_unpin(const Command& command) {
  return std::to_string(as<UnpinCommand>(command).pin);
}

Result<Change> run_unpin(const Snapshot& before, const Command& command, Progress*) {
  const std::size_t pin = as<UnpinCommand>(command).pin;
  if (before.pins == nullptr || pin >= before.pins->size())
    return fail(ErrorKind::kUsage, "there is no such pin");
  Pins pins = *before.pins;
  pins.erase(pins.begin() + static_cast<std::ptrdiff_t>(pin));
  return change_setting_pins(std::move(pins));
}

}  // namespace shw
