// Runs verbs that read every byte of a checkpoint or large metadata, or change it, on its own
// machine over ssh if shardwright is installed there: only the answer is transferred.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "app/cli/verbs.h"

namespace shw::cli {

// Environment variable of a remote run: "ssh://me@host". The run's JSON then names paths that work
// on the local machine.
inline constexpr const char* kReachedAs = "SHARDWRIGHT_REACHED_AS";

// The exit code of the remote run; nullopt if the verb must run here, and would read every byte
// over ssh if context.transfer says why. `words`: the arguments that the user typed.
std::optional<int> run_on_remote_host(Context& context, std::span<const std::string> words);
// Like run_on_remote_host, for verbs that read metadata only. Call it when the step to open is
// known. nullopt (run locally) unless the metadata are large.
std::optional<int> run_on_remote_host_if_large(Context& context,
                                               std::span<const std::string> words);

// Says how many bytes would travel, and asks, if context.transfer says why. Called once the steps
// to open are resolved. The exit code if the user refuses.
std::optional<int> confirm_transfer(Context& context);

// True for a verb that reads no elements with these options.
bool reads_only_metadata(const Options& options);

}  // namespace shw::cli
