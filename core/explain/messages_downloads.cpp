// Messages about files that have to come over a network: the Hugging Face hub, object storage,
// HTTP.
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kHub = "huggingface_hub";

std::int64_t number_of(const ErrorMessage& message, std::string_view key) {
  for (const auto& [name, number] : message.numbers) {
    if (name == key) return number;
  }
  return -1;
}
bool is_longer_than_said(const ErrorMessage& message) {
  return number_of(message, "found_bytes") > number_of(message, "expected_bytes");
}

constexpr MessageKind kDownloadMessages[] = {
    {.id = "download-longer",
     .example = "Consistency check failed: file should be of size 0 but has size 2166",
     .patterns = {"file should be of size <#expected_bytes> but has size <#found_bytes>"},
     .meanings = {{{.id = "wrong-length-said",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the server named fewer bytes than it sent",
                    .text = "A proxy or a mirror that compresses its answers names the compressed "
                            "length, or 0. Unset HF_ENDPOINT and the proxy if you can, update "
                            "huggingface_hub, and download again with force_download=True. A part "
                            "file of an earlier download can also have grown: delete *.incomplete.",
                    .decide = "Whether the size found is the size on the model's page.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts = is_longer_than_said,
     .loader = kHub},
    {.id = "download-size",
     .example = "Consistency check failed: file should be of size 4976698672 but has size 10240",
     .patterns = {"file should be of size <#expected_bytes> but has size <#found_bytes>",
                  "content-length: <#expected_bytes>~but only <#found_bytes>",
                  "incompleteread(<#found_bytes> bytes read, <#missing_bytes> more expected"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.95,
                    .title = "a download stopped before its end",
                    .text = "The server has a longer file than the one that arrived. Download it "
                            "again (force_download=True); other files of the folder may be cut "
                            "off too.",
                    .decide = "Nothing: the message has both sizes.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "xet-download",
     .example =
         "RuntimeError: Data processing error: CAS service error : Reqwest Error: HTTP status",
     .patterns = {"data processing error:", "file reconstruction error:"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = WrongSide::kEither,
                    .weight = 0.6,
                    .title = "a transfer from the hub's Xet storage failed",
                    .text = "The network, the server or the disk stopped it, so a file may be "
                            "missing or short. Download it again. HF_HUB_DISABLE_XET=1 takes plain "
                            "HTTP instead: set it before Python starts, because huggingface_hub "
                            "reads it at import.",
                    .decide = "Check the folder: it says which files are missing or short.",
                    .command = "shardwright check CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed,
     .loader = kHub},
    {.id = "hub-offline",
     .example = "OfflineModeIsEnabled: Cannot reach https://huggingface.co/...: offline mode is "
                "enabled.",
     .patterns = {"offline mode is enabled", "outgoing traffic has been disabled"},
     .meanings = {{{.id = "not-downloaded",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "downloads are switched off, and the file is not in the cache",
                    .text = "HF_HUB_OFFLINE=1 or local_files_only=True forbids the download. No "
                            "checkpoint was opened. Download once where there is a network "
                            "(`hf download REPO --local-dir DIR`) and give the program DIR, or "
                            "unset the variable.",
                    .decide = "Whether HF_HOME or HF_HUB_CACHE names the cache that was filled.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kHub},
    {.id = "hub-unreached",
     .example = "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and "
                "couldn't find them in the cached files.",
     .patterns = {"we couldn't connect to <name> to load", "cannot find the requested files in the",
                  "specific connection error when trying to load <name>",
                  "distant resource does not seem to be on huggingface.co"},
     .meanings = {{{.id = "not-downloaded",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the hub was not reached, and the file is not in the cache",
                    .text = "No checkpoint was opened. The node has no way out, or a proxy, a "
                            "firewall or a mirror (HF_ENDPOINT) answered in the hub's place. "
                            "Compute nodes often have no network: download on another one "
                            "(`hf download REPO --local-dir DIR`) and give the program DIR.",
                    .decide = "`curl -I https://huggingface.co` on the node that runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kHub},
    {.id = "hub-refused",
     .example = "GatedRepoError: Cannot access gated repo for url URL. Access to model NAME is "
                "restricted.",
     .patterns = {"cannot access gated repo for url", "access to model <name> is restricted",
                  "you are trying to access a gated repo", "401 client error",
                  "invalid credentials in authorization header", "invalid username or password",
                  "403 forbidden: <name>"},
     .meanings = {{{.id = "no-access",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the hub refused: the model is gated, or the token may not read it",
                    .text = "Nothing was downloaded. Ask for access on the model's page, then log "
                            "in with that account: `hf auth login`, or HF_TOKEN in the job's "
                            "environment. A fine-grained token needs the permission for gated "
                            "repositories too.",
                    .decide = "`hf auth whoami` on the node that runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kHub},
    {.id = "hub-no-repository",
     .example = "RepositoryNotFoundError: 404 Client Error. Repository Not Found for url: URL.",
     .patterns = {"repository not found for url: <name>", "revision not found for url: <name>",
                  "is not a valid git identifier"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the hub has no repository or revision of that name for this token",
                    .text = "Nothing was downloaded. The name is misspelt, the repository is "
                            "private and the token does not see it, or a local path does not exist "
                            "and was taken for a name.",
                    .decide = "Whether the page opens in a browser, logged in.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kHub},
    {.id = "hub-no-file",
     .example = "EntryNotFoundError: 404 Client Error. Entry Not Found for url: URL.",
     .patterns = {"entry not found for url: <name>"},
     .meanings = {{{.id = "other-name",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the repository is there, and the file is not in it",
                    .text = "The weights have another name or form there (*.bin, shards with an "
                            "index, a variant, a subfolder), or are in another revision. Look at "
                            "the page's list of files.",
                    .decide = "The list of files of that revision.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kHub},
    {.id = "too-many-requests",
     .example = "HfHubHTTPError: 429 Client Error: Too Many Requests for url: URL",
     .patterns = {"429 client error", "429 too many requests", "too many requests for url",
                  "please reduce your request rate", "an error occurred (slowdown) when calling",
                  "rate of change requests to the object", "toomanyrequests: 429", "503 slow down"},
     .meanings = {{{.id = "too-many-requests",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the server limits how often it is asked",
                    .text = "Many ranks that read or write at once do it. Let one process per node "
                            "download and the others wait; use fewer workers; retry with growing "
                            "pauses. On the hub a token raises the limit. A save that gave up on "
                            "its retries is not whole: use the step before it.",
                    .decide = "Whether one process alone gets through.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "hf-transfer",
     .example = "An error occurred while downloading using `hf_transfer`.",
     .patterns = {"an error occurred while downloading using `hf_transfer`",
                  "fast download using 'hf_transfer' is enabled"},
     .meanings = {{{.id = "not-downloaded",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the download helper hf_transfer is missing or failed",
                    .text = "HF_HUB_ENABLE_HF_TRANSFER=1 asks for it, and it hides the reason of a "
                            "failure. Unset the variable and download again: the plain way works, "
                            "or says what is wrong. Later versions of huggingface_hub do without "
                            "it.",
                    .decide = "The error without the variable.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kHub},
    {.id = "storage-refused",
     .example = "ClientError: An error occurred (403) when calling the HeadObject operation: "
                "Forbidden",
     .patterns = {"an error occurred (403) when calling",
                  "an error occurred (accessdenied) when calling",
                  "an error occurred (expiredtoken) when calling",
                  "an error occurred (invalidaccesskeyid) when calling",
                  "an error occurred (signaturedoesnotmatch) when calling",
                  "unable to locate credentials", "does not have storage.objects.<name>",
                  "authorizationpermissionmismatch"},
     .meanings = {{{.id = "no-access",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the object storage refused: no valid credentials for this bucket",
                    .text = "Nothing is said about the bytes. The job's role or key lacks the "
                            "right, has run out, or is not in the environment of this process. S3 "
                            "also says 403 for an object that does not exist where the role may "
                            "not list the bucket.",
                    .decide = "`aws s3 ls` (or `gcloud storage ls`) of the path, in the same job.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "storage-no-object",
     .example = "ClientError: An error occurred (NoSuchKey) when calling the GetObject operation",
     .patterns = {"an error occurred (nosuchkey) when calling",
                  "an error occurred (404) when calling",
                  "an error occurred (nosuchbucket) when calling",
                  "the specified key does not exist", "the specified blob does not exist",
                  "no such object: <name>"},
     .meanings = {{{.rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.6,
                    .title = "an object of the checkpoint is not in the bucket",
                    .text = "The upload did not end, a lifecycle rule or a clean-up removed the "
                            "object, or the prefix is of another step.",
                    .decide = "The list of the prefix against an earlier step's.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "network-stopped",
     .example = "ConnectionError: HTTPSConnectionPool(host='HOST', port=443): Read timed out.",
     .patterns = {"httpsconnectionpool(host=<name>", "max retries exceeded",
                  "temporary failure in name resolution", "certificate verify failed",
                  "remote end closed connection without response",
                  "server disconnected without sending a response",
                  "an error occurred (requesttimeout) when calling", "fstimeouterror"},
     .meanings = {{{.id = "not-downloaded",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the network stopped a transfer",
                    .text = "Start it again: whole files in the hub's cache are not fetched twice. "
                            "A larger HF_HUB_DOWNLOAD_TIMEOUT (seconds, 10 by default) helps on a "
                            "slow line. \"Name resolution\" means no network on this node; "
                            "\"certificate\" means a proxy that needs its own certificate.",
                    .decide = "Check the folder: it says which files are missing or short.",
                    .command = "shardwright check CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed},
};

}  // namespace

std::span<const MessageKind> download_messages() {
  return kDownloadMessages;
}

}  // namespace shw
