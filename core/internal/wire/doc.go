// Package wire is the one place where messages and frames cross the process
// boundary: the protocol buffers of core/proto/earshot/decoder/v1, written and
// read by hand for the Decode call.
//
// The bytes are plain protobuf, which any decoder in any language reads with
// generated code; the tests hold this codec against ours. It is written by hand
// because the generated code costs a third of the pipeline: here the frames of a
// request are sent from the buffer that they were read into, a response is read
// straight into msg.Message without an object between, its strings share one
// allocation per response, and content comes back as a range of the frame.
//
// gRPC hands a codec the message in pieces of 16 KiB (its HTTP/2 frames) and
// frees them when the codec returns, so a request is made contiguous once, in
// the plugin, into a buffer of gRPC's own pool.
package wire
