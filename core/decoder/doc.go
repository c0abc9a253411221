// Package decoder is the contract between Earshot and the authors of decoders.
// A decoder turns the frames of one stream into normalized messages. Every
// decoder, ours included, runs in a process of its own and is served by package
// sdk; the same contract for other languages is core/proto/PROTOCOL.md.
//
// The rules. The conformance suite proves each of them, and names it when it is
// broken.
//
//	D1  One Decoder per stream, called from one goroutine at a time.
//	D2  Frames arrive in the order of the stream. After a restart the stream is
//	    resumed from a snapshot, or from its beginning when there is none.
//	D3  Frame.Data is valid only during the call. A Text may alias it; anything
//	    kept beyond the call is copied (Text.Own, string conversion).
//	D4  The output is a pure function of the options and the frames: no clock,
//	    no randomness, no input or output, no goroutines, no globals.
//	D5  Every message has a key that is unique in its session and the same in
//	    every replay, cut and form of the conversation: the protocol's id first,
//	    else a hash of the fields that the decoder reads, not of the whole
//	    frame: an unknown field changes no key. Times are those of the protocol.
//	D6  A complete message never changes. An incomplete one may be emitted
//	    again with the same key until it is complete.
//	D7  Unknown input is kept raw, as a message of kind unknown whose attribute
//	    "type" names it, and is never an error. Unknown fields of a known
//	    frame are kept too (package sdk/unknown), or left out by name.
//	D8  A bad frame is reported as exactly one problem, and decoding continues.
//	D9  A returned error means that this decoder cannot continue; Permanent marks
//	    an error that a replay would repeat.
//	D10 Flush emits the open messages as incomplete. It changes no state and may
//	    be called at any time and any number of times.
//	D11 Memory is bounded by the open calls, runs and messages of the protocol.
//	D12 Messages belong to the host once they are returned.
package decoder
