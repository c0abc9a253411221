package claude

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Records of type system that both formats have. A transcript spells members in camelCase, a
// stream mostly in snake_case:
//
//	{"subtype":"compact_boundary","content":"…","compactMetadata":{"trigger":"auto","preTokens":167000}}
//	{"subtype":"api_error","error":{"status":529,"message":"…"},"retryAttempt":2,"maxRetries":10,"retryInMs":1100}
//	{"subtype":"api_retry","error":"rate_limit","error_status":429,"attempt":2,"max_retries":10,"retry_delay_ms":1100}

// Compacted decodes a record of the subtype compact_boundary or microcompact_boundary: the
// context was replaced by a summary, which may follow as a user record.
func Compacted(ln *Line, subtype string) {
	ln.Finish(ln, ln.Lane)
	m := ln.Status(ln.ID(), subtype)
	m.Hidden, m.Signal = false, msg.Compaction
	m.Content = ln.Root.Get("content").Text()
	meta := ln.Root.First("compact_metadata", "compactMetadata", "microcompactMetadata")
	m.SetAttr("trigger", ident.Of(meta.Get("trigger")))
	conversation.AttrsAs(m, meta, jsonv.Value.Digits, "pre_tokens=pre_tokens|preTokens", "post_tokens=post_tokens|postTokens", "duration_ms=duration_ms|durationMs")
}

// Retried decodes a record of the subtype api_error or api_retry: a request to the model
// failed and is tried again.
func Retried(ln *Line, subtype string) {
	m := ln.Status(ln.ID(), subtype)
	m.Signal = msg.Retry
	fault := ln.Root.Get("error")
	for _, path := range [...][]string{{"message"}, {"error", "error", "message"}, {"error", "message"}, {"cause", "code"}} {
		if m.Content.IsZero() {
			m.Content = msg.Plain(fault.Path(path...).Str())
		}
	}
	if m.Content.IsZero() {
		m.Content = ln.Root.Get("content").Text()
	}
	if m.Content.IsZero() {
		m.Content = fault.Text()
	}
	status := jsonv.Or(ln.Root.First("error_status", "status_code"), fault.Get("status"))
	m.SetAttr("request_id", ident.Of(fault.Get("requestID")))
	m.SetAttr("error_type", ident.Of(fault.Path("error", "error", "type")))
	m.SetAttr("status_code", status.Digits())
	conversation.AttrsAs(m, ln.Root, jsonv.Value.Digits, "attempt=attempt|retryAttempt", "max_attempts=max_retries|maxRetries", "wait_ms=retry_delay_ms|retryInMs")
}
