// Package redact takes secrets out of frames before anything reaches the disk: in
// the Recorder before the journal, and in the Sink between a file and the pipeline.
// The quarantine, logs, spans and tables come after it.
//
// # What it finds
//
// The values of JSON keys, in any letter case; what named regular expressions
// match; and, if Builtin is set, well-known secrets: access keys of clouds, API
// tokens that begin with sk-, ghp_, xox., glpat-, AIza, hf_ or npm_, JSON web
// tokens, PEM private keys, passwords in URLs, bearer and basic credentials.
//
// A frame that is JSON stays JSON. Expressions see the text of a string as it is
// without its escapes, and a string that holds JSON is gone through in the same
// way, to any depth that matters. Strings in which nothing is found keep their
// bytes. Text and damaged JSON are searched as they are.
//
// What is found is replaced by [redacted:name], or, to be able to join on it, by
// [redacted:name:0123456789abcdef] with the head of the HMAC-SHA-256 of the value.
//
// # What it costs
//
// Each batch is searched once for what could be a secret. Builtin secrets begin with
// what is rare elsewhere, or follow it, so the search goes in steps of 16 bytes from
// one such place to the next (scent) and looks closer there. Keys cost another look
// at each colon. An expression with a literal part of three bytes or more costs a
// search for that literal; one without is run over everything. When nothing is found
// nothing is copied. See the benchmarks.
//
// # What it cannot find
//
// A secret that is split over two frames, such as deltas of a stream: the frames
// are looked at one by one. A builtin secret that is shorter than 15 bytes with
// what stands around it. What is encoded (base64, as in Grace's SSE payloads;
// percent-encoding; characters written as \u escapes where there is no need to;
// compressed or binary payloads). The listener's own state (source.Recording.Mark)
// is kept as it is. Positions of a file are not changed by redaction; those of a
// journalled stream count the bytes that are kept.
package redact
