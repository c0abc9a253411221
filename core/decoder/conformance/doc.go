// Package conformance checks a decoder against its contract: the rules D1 to D12 of
// package decoder. It is a library and does not import package testing, so that the
// same suite runs in the tests of a Go decoder (package decodertest) and
// against an executable written in any language (earshot plugin test).
//
// The input is cases: recorded streams with their expected messages. The suite does not
// know the format: it cuts, repeats, interleaves and damages the streams, and compares
// the output with that of the recorded stream.
//
//	check              statement                                                  rules
//	C1  golden         the frames decode to want.jsonl, all messages valid        D4 D5
//	C2  recut          any cut of the bytes and of the deltas folds to the same   D5
//	C3  prefix         every prefix decodes, and complete messages never change   D6 D9
//	C4  reload         the live stream and its reloaded form fold to the same     D5
//	C5  replay         a restart at any frame, by snapshot, folds to the same     D2 D5
//	C6  interleave     streams decoded in turns do not affect each other          D1
//	C7  aliasing       buffers overwritten after the call, messages read late     D3 D12
//	C8  transport      in process, over gRPC, as an executable: the same          D2 D4
//	C9  noise          unknown events and fields are kept raw and change nothing  D5 D7
//	C10 bad frames     each has exactly one problem, and decoding continues       D8
//	C11 lifecycle      Flush changes no state; decoders share none                D1 D10
//	C12 determinism    the same frames have the same output at another time       D4 D5
//	C13 memory         10,000 repetitions retain no more memory than 5,000        D11
//	C14 lossless       each text is in the output, or is left out by name         D7
//
// C14 looks for each string of 16 characters of the input in the messages (texts,
// attributes, names, ids), and for marks that it puts in the place of each value: a
// string, an object, a list, and a new member. A string that is neither there nor in
// a bad frame must be listed, by its path and with the reason, in leaves-out.json beside
// the cases: a list of unknown.LeftOut. A word or a time that the decoder understands may
// be missing, if another one in its place would be kept. C14 searches for text that a
// decoder split by its lines and tags, for JSON and Base64 in a string by their content,
// and for bytes by their hash. The check is skipped for a decoder without leaves-out.json.
//
// A failed result names the broken rule. A check that cannot run is reported as skipped,
// with the reason, and not as passed.
//
// # Cases
//
// A case is a folder:
//
//	in.jsonl | in.sse | in.ws.jsonl | in.json | frames.jsonl   the stream (one of them; package fixture)
//	want.jsonl            its expected output: see Golden
//	reload.jsonl | ...    the reloaded form of the same conversation, with the same endings
//	reload.lacks.json     the columns and messages that a form lacks: see Lacks
//	options.json          the source's options
//	origin.txt            the stream's origin; otherwise the folder's and the input's name
//	reload.origin.txt     the origin of the reloaded form; otherwise that of the stream
//	deltas.json           the strings that a sender may cut as it likes: a list of Delta
//
// Load ignores any other file of the folder, but returns an error for a name that begins
// like one of these: it is a typing error.
package conformance
