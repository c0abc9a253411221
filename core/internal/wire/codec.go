package wire

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Method is the full name of the streaming call.
const Method = "/earshot.decoder.v1.Decoder/Decode"

// MaxMessage is the largest gRPC message that either side sends or accepts: a
// line of 64 MiB, returned at three times its size when every byte of it had to
// be replaced, and some room.
const MaxMessage = 256 << 20

// Codec encodes Request and Response by hand and leaves every other message to
// gRPC's protobuf codec, whose name it bears: on the wire they are the same.
type Codec struct {
	proto encoding.CodecV2
	sent  *sent
}

// NewCodec returns a codec.
func NewCodec() *Codec { return &Codec{proto: encoding.GetCodecV2(proto.Name), sent: &sent{}} }

// Name implements encoding.CodecV2.
func (c *Codec) Name() string { return proto.Name }

// Marshal implements encoding.CodecV2. It leaves a Response empty: its buffer is
// gRPC's until it is sent, and the Response goes on with another.
func (c *Codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *Request:
		return v.Marshal()
	case *Response:
		b := []byte(v.buf)
		v.buf = *c.sent.Get(0)
		return mem.BufferSlice{mem.NewBuffer(&b, c.sent)}, nil
	}
	return c.proto.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c *Codec) Unmarshal(in mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *Request:
		return v.Unmarshal(in)
	case *Response:
		v.buf.fill(in)
		return nil
	}
	if err := c.proto.Unmarshal(in, v); err != nil {
		return fmt.Errorf("wire: %w", err)
	}
	return nil
}
