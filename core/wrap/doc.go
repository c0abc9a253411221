// Package wrap runs a program that speaks JSON-RPC over its standard streams, such as an MCP server, an
// ACP agent or codex app-server, in the place of its client's command, and records both directions.
//
// The traffic has priority. Bytes are passed as they are, as soon as they are read, and the recorder
// gets a copy: it has a goroutine of its own and a queue of bounded size, so neither a full disk nor a
// slow one delays a byte. Bytes that cannot be recorded are dropped, and a record has their number
// (TestTrafficPassesWithoutADisk). Standard error is the client's own, inherited.
//
// Neither the program nor the client notices the wrapper
// (TestProgram): signals are forwarded, the exit status is the program's, a closed stream closes the
// stream behind it. A program that ended while its own children keep its standard output
// open does not hold the wrapper (grace). On Linux, the program dies with a wrapper that is killed.
//
// The wrapper is in the process group of the program, so that a signal to the group reaches both: the
// program then gets it twice, once by the wrapper.
//
// # Records
//
// A recording is a jsonl file of one connection, and one writer owns it. A record is
//
//	{"t":"2026-01-02T15:04:05.123456789Z","dir":"out","frame":{"jsonrpc":"2.0",...}}
//
// where dir is out for messages of the client and in for those of the program: recorders of ACP
// clients write the same. A line that is no JSON is a string; of one longer than maxLine, and of
// dropped ones, lost has the number of bytes. A frame is redacted before it is on the disk.
//
// Recordings are in a folder of the format (FORMAT/TIME-PID-PROGRAM.jsonl), which a file source
// reads. A new recorder removes those of the folder that no wrapper writes and that are older than
// maxAge, and the oldest beyond maxFolder (TestOldRecordingsAreRemoved).
package wrap
