// Package redact removes secrets from the traffic, twice. Frames are redacted before anything
// reaches the disk: in the Recorder before the journal, and in the Sink between a file and
// the pipeline. Decoded messages are redacted again between the decoder and everything else
// (Message), because a text that was streamed in pieces, encoded or escaped is whole only there.
// Quarantine, logs, spans, metrics and tables are behind both.
//
// # Findings
//
// The values of JSON keys, in any letter case; the matches of named regular
// expressions; and, if Builtin is set, well-known secrets (kinds.go): keys and tokens of some
// 150 services by their prefix or by the service's name before them, JSON web tokens, PEM and
// PuTTY keys, passwords in URLs, credentials in headers, cookies and command lines, and values
// by key, in any notation: DB_PASSWORD=x, password: x, {"password":"x"},
// {"name":"DB_PASSWORD","value":"x"}.
//
// A kind is an expression and further conditions of the secret: its entropy, its check
// digits, its shape. The prefilter is derived from the expression.
//
// A frame that is JSON stays JSON. Expressions see the text of a string
// without its escapes, and a string that holds JSON is redacted in the same
// way, eight deep. Strings in which nothing is found keep their
// bytes. Text and damaged JSON are searched as they are. A frame that is text in base64 as a
// whole, such as an event of Grace, is redacted inside, and is base64 again.
//
// A finding is replaced by [redacted:name], or, to be able to join on it, by
// [redacted:name:0123456789abcdef] with the head of the HMAC-SHA-256 of the value.
//
// The second pass leaves ids and keys of messages as they are: they are the identity of rows.
//
// # Policy
//
// A Filter is the second pass of one source, with its policy: personal data is kept, dropped,
// masked or replaced by a keyed token, and content is kept, summed up or withheld. It is not
// applied to frames, in which numbers are ids and times too: the journal, earshot tail and the
// state of decoders have all of it.
//
// # Cost
//
// Each batch of a file is searched once for candidates: a message of one in which there are none is searched again
// only where a text is not a whole string of the batch, or an expression is configured. The search goes in steps of 16 bytes, 64 in a row, from one
// prefix of a kind to the next (prefilter) and applies the expression there, to a bounded
// part of the text. Configured keys cost another look at each colon. A configured expression
// with a literal part of three bytes or more costs a search for that literal; one without is
// run over everything. When nothing is found nothing is copied. See the benchmarks and docs/security.md.
//
// # Secrets that it cannot find
//
// A secret that is split over two frames, such as deltas of a stream, is in the journal, in the
// dead letters of the frames and in a decoder's snapshot until they are removed: to hold
// frames back until their text is whole would lose them in a crash, and no byte of the
// traffic may depend on that. The tables, spans, logs and metrics do not have it.
// A message that is stored while it is still open (partial) may show the first part of a secret,
// of which the rest has not come, until the next version replaces it.
// Nor does it find a secret in another encoding: base64 inside of a text, percent-encoding,
// compressed or binary payloads. The listener's own state (source.Recording.Mark)
// is not redacted. Positions of a file are not changed by redaction; those of a
// journalled stream count the bytes that are kept.
package redact
