// Package proto_test holds PROTOCOL.md against the code.
package proto_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/wire"
	pb "github.com/earshot-dev/earshot/core/proto/earshot/decoder/v1"
)

func protocol(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestProtocolNamesWhatTheCodeDoes(t *testing.T) {
	text := protocol(t)
	h := wire.Handshake()
	for _, want := range []string{
		fmt.Sprintf("| `%s` | `%s` |", h.MagicCookieKey, h.MagicCookieValue),
		fmt.Sprintf("| `PLUGIN_PROTOCOL_VERSIONS` | `%d` |", h.ProtocolVersion),
		"`" + goplugin.EnvUnixSocketDir + "`",
		fmt.Sprintf("%d|%d|unix|", goplugin.CoreProtocolVersion, h.ProtocolVersion),
		"service name `" + goplugin.GRPCServiceName + "`",
		fmt.Sprintf("%d MiB (%d bytes)", wire.MaxMessage>>20, wire.MaxMessage),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("PROTOCOL.md does not say %q", want)
		}
	}
	for name := range pb.FrameKind_value {
		if kind := strings.TrimPrefix(name, "FRAME_KIND_"); !strings.Contains(text, "| "+kind) && !strings.Contains(text, ", "+kind) {
			t.Errorf("PROTOCOL.md does not tell of the frame kind %s", kind)
		}
	}
}

// The example's text and bytes are equal to generated code and to ours.
func TestProtocolExample(t *testing.T) {
	text := protocol(t)
	blocks := regexp.MustCompile("(?s)```(textproto|hex)\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) != 4 {
		t.Fatalf("%d blocks", len(blocks))
	}
	req, resp := &pb.DecodeRequest{}, &pb.DecodeResponse{}
	raw := [2][]byte{bytesOf(t, blocks[1][2]), bytesOf(t, blocks[3][2])}
	for i, m := range []proto.Message{req, resp} {
		want := m.ProtoReflect().New().Interface()
		if err := prototext.Unmarshal([]byte(blocks[2*i][2]), want); err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(raw[i], m); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(want, m) {
			t.Errorf("the text says\n%v\nthe bytes say\n%v", want, m)
		}
	}
	var ours wire.Request
	if err := ours.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw[0])}); err != nil {
		t.Fatal(err)
	}
	b := ours.Batches[0]
	if len(b.Frames) != 2 || string(b.Frames[1].Data) != `{"type":"us` || b.Frames[0].Kind != frame.Line || b.Open.Origin != "hall" || !b.Flush || !b.Snapshot {
		t.Errorf("%+v", b)
	}
	var r wire.Response
	r.SetBytes(raw[1])
	if err := r.Results(func(one []byte) error {
		var res wire.Result
		if err := res.Read(one, b.Data); err != nil {
			return err
		}
		if len(res.Messages) != 1 || res.Messages[0].Content.String() != "Hi\n" || res.Problems[0].Frame != 1 || string(res.Snapshot) != `{"run":"u-1"}` {
			t.Errorf("%+v", res)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// bytesOf reads a hex dump whose text column follows three spaces.
func bytesOf(t *testing.T, dump string) []byte {
	t.Helper()
	var out []byte
	for l := range strings.Lines(dump) {
		digits, _, _ := strings.Cut(l, "   ")
		b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}
