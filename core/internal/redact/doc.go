// Package redact removes secrets from frames before anything reaches the disk: in
// the Recorder before the journal, and in the Sink between a file and the pipeline.
// The quarantine, logs, spans and tables are behind it.
//
// # Findings
//
// The values of JSON keys, in any letter case; the matches of named regular
// expressions; and, if Builtin is set, well-known secrets: access keys of clouds, API
// tokens that begin with sk-, ghp_, xox., glpat-, AIza, hf_ or npm_, JSON web
// tokens, PEM private keys, passwords in URLs, bearer and basic credentials.
//
// A frame that is JSON stays JSON. Expressions see the text of a string
// without its escapes, and a string that holds JSON is redacted in the same
// way, eight deep. Strings in which nothing is found keep their
// bytes. Text and damaged JSON are searched as they are.
//
// A finding is replaced by [redacted:name], or, to be able to join on it, by
// [redacted:name:0123456789abcdef] with the head of the HMAC-SHA-256 of the value.
//
// # Cost
//
// Each batch is searched once for candidates. Builtin secrets begin with a mark, a text that
// is rare elsewhere, or follow one, so the search goes in steps of 16 bytes from
// one mark to the next (prefilter) and looks closer there. Keys cost another look
// at each colon. An expression with a literal part of three bytes or more costs a
// search for that literal; one without is run over everything. When nothing is found
// nothing is copied. See the benchmarks.
//
// # Limitations
//
// It does not find a secret that is split over two frames, such as deltas of a stream: the
// frames are searched one by one. Nor a builtin secret that is shorter than 15 bytes with
// the text around it. Nor encoded ones (base64, as in Grace's SSE payloads;
// percent-encoding; characters written as \u escapes without need;
// compressed or binary payloads). The listener's own state (source.Recording.Mark)
// is not redacted. Positions of a file are not changed by redaction; those of a
// journalled stream count the bytes that are kept.
package redact
