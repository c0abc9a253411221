// Package wire encodes and decodes the messages that cross the boundary between the sidecar and a
// decoder process: the protocol buffers of core/proto/earshot/decoder/v1 for the call Decode.
// Frames enter in a Request, messages return in a Response.
//
// The bytes are plain protobuf, which a decoder in any language reads and writes with
// generated code; the tests hold this codec against ours. It has an encoder of its own
// because the generated code costs a third of the pipeline: here the frames of a request
// are sent from the buffer that they were read into, a response is decoded straight into
// msg.Message without an object between, its strings share one allocation per response, and
// content is returned as a range of the frame. The codec of messages is generated from
// core/msg/schema; requests and responses are encoded by hand.
//
// gRPC hands a codec the message in pieces of 16 KiB (its HTTP/2 frames) and frees them when
// the codec returns, so a request is made contiguous once, in the plugin, in a buffer that
// the next request uses again.
package wire
