// Concurrent HTTP requests with retries. Answers are untrusted: lengths are compared with the
// request, bodies are limited, redirects are bounded and never leave HTTPS.
#pragma once

#include <span>
#include <string>

#include "core/base/result.h"
#include "core/io/remote/http_request.h"

namespace shw {

// Sends all requests concurrently. Returns an Error if one gets no answer; a refusing status (403,
// 404, 412) is an answer. Busy servers (429, 5xx), cut connections and stalls are retried.
Status http_fetch(std::span<HttpRequest> requests, std::span<HttpAnswer> answers);
Result<HttpAnswer> http_fetch(HttpRequest request);

// Converts a refusing status to an Error, with the error code from S3's body.
Error http_error(const HttpRequest& request, const HttpAnswer& answer, const std::string& advice);

}  // namespace shw
