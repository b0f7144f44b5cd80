// Requests over HTTP that travel side by side, with retries. What comes back is hostile: lengths
// are held against what was asked, bodies have a limit, redirects are bounded and never leave
// HTTPS.
#pragma once

#include <span>
#include <string>

#include "core/base/result.h"
#include "core/io/remote/http_request.h"

namespace shw {

// Sends all of them, some at once. An Error where one cannot be had at all; a status that refuses
// (403, 404, 412) is an answer. Busy servers (429, 5xx), cuts and stalls are tried again.
Status http_fetch(std::span<HttpRequest> requests, std::span<HttpAnswer> answers);
Result<HttpAnswer> http_fetch(HttpRequest request);

// What a refusing status means, with the code that S3 puts into its body.
Error http_error(const HttpRequest& request, const HttpAnswer& answer, const std::string& advice);

}  // namespace shw
