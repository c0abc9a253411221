// Package jsonv reads a JSON document without copying it: Parse checks the whole
// document in one pass and notes where each value lies, and a Value names a range
// of the input. Texts that are only passed on, which are most of an agent's traffic,
// leave as a msg.Text that aliases the frame and is unescaped once, when the row is
// written.
//
// It exists because the libraries either validate and allocate (encoding/json,
// 100 to 250 MB/s on transcript lines) or do not return the ranges of the input
// that the process boundary needs (fastjson, sonic, simdjson-go: their strings
// are parts of a copy). The benchmark in this package holds it against
// encoding/json in the same run.
//
// Parse accepts exactly the documents of encoding/json (a fuzz test holds it to
// that), except that invalid UTF-8 is an error here, as RFC 8259 has it, and that
// nesting is limited to MaxDepth. Of duplicate keys the last one counts.
package jsonv
