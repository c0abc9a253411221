// Package conformance holds a decoder to its contract: the rules D1 to D12 of
// package decoder. It is a library and knows nothing of package testing, so that
// the same suite runs in the tests of a Go decoder (package decodertest) and
// against an executable written in any language (earshot plugin test).
//
// A decoder is tested with cases, recorded streams and the messages they must
// give, and without knowing its format: the suite cuts, repeats, interleaves and
// damages what it was given, and compares with what the decoder said before.
//
//	check              statement                                                  rules
//	C1  golden         the frames give the messages of want.jsonl, all valid      D4 D5
//	C2  recut          any cut of the bytes and of the deltas folds to the same   D5
//	C3  prefix         every prefix decodes, and complete messages stay           D6 D9
//	C4  reload         the live stream and its reloaded form fold to the same     D5
//	C5  replay         a restart at any frame, by snapshot, folds to the same     D2 D5
//	C6  interleave     streams decoded in turns do not touch each other           D1
//	C7  aliasing       buffers overwritten after the call, messages read late     D3 D12
//	C8  transport      in process, over gRPC, as an executable: the same          D2 D4
//	C9  noise          unknown events and fields are kept raw and change nothing  D5 D7
//	C10 bad frames     each gives exactly one problem, and the stream goes on     D8
//	C11 lifecycle      Flush changes nothing; decoders share nothing              D1 D10
//	C12 determinism    the same frames give the same bytes at another time        D4 D5
//	C13 memory         ten thousand exchanges leave no more behind than five      D11
//	C14 lossless       each text comes out again, or is left out by name          D7
//
// C14 looks for each string of 16 characters of the input in the messages (texts,
// attributes, names, ids), and for marks that it puts in the place of each value: a
// string, an object, a list, and a new member. What is neither there nor in a bad frame
// is named, by its path and with the reason, in leaves-out.json beside the cases: a list
// of unknown.LeftOut. A word or a time that the decoder has understood need not be there:
// then another one in its place would be. Text that a decoder took apart is looked for
// by its lines and tags; JSON and Base64 in a string, by what is in it; bytes, by their
// hash. It is skipped for a decoder that has no leaves-out.json.
//
// A result says which rule is broken. A check that cannot be made is reported as
// skipped, with the reason, and not as passed.
//
// # Cases
//
// A case is a folder:
//
//	in.jsonl | in.sse | in.ws.jsonl | in.json | frames.jsonl   the stream (one of them; package fixture)
//	want.jsonl            what it gives: see Golden
//	reload.jsonl | ...    the reloaded form of the same conversation, with the same endings
//	reload.lacks.json     what the two forms cannot carry: see Lacks
//	options.json          the source's options
//	origin.txt            the stream's origin; otherwise the folder's and the input's name
//	reload.origin.txt     the origin of the reloaded form; otherwise that of the stream
//	deltas.json           the strings that a sender may cut as it likes: a list of Delta
//
// Anything else in the folder is left alone, unless its name begins like one of
// these: then it is a typing error.
package conformance
